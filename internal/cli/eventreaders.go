package cli

import (
	"fmt"
	"strings"

	"aob.dev/writ/bus"
	"aob.dev/writ/internal/datadir"
)

// reader is the output of `writ admin events issue --json`: everything that a NATS client needs, except
// the seed.
type reader struct {
	Name        string `json:"name"`
	Stream      string `json:"stream"`
	Consumer    string `json:"consumer"`
	Subjects    string `json:"subjects"`
	APIPrefix   string `json:"api_prefix"` // of JetStream
	InboxPrefix string `json:"inbox_prefix"`
	SeedFile    string `json:"seed_file"`
}

func eventsIssue(c *command) {
	var tenant string
	c.dataFlag()
	c.answer = func(args []string) (answer, error) {
		if strings.Contains(args[0], "_") {
			return answer{}, usage(fmt.Errorf("%q: the name of a reader has no underscore, which ends the tenant's", args[0]))
		}
		name := tenant + "_" + args[0]
		if err := issue(c, datadir.EventReaders, name, nil, c.out); err != nil {
			return answer{}, err
		}
		consumer := bus.EventReader(name)
		r := reader{
			Name: name, Stream: bus.EventsStream, Consumer: consumer, Subjects: bus.Events(tenant), APIPrefix: bus.EventsAPI,
			InboxPrefix: bus.InboxPrefix(bus.ProcessUser(bus.Hearer, consumer)), SeedFile: c.out,
		}
		note := fmt.Sprintf("the seed of %s is in %s and nowhere else; with it a consumer %s of stream %s may read %s, with JetStream's prefix %s and inboxes %s.>\n",
			name, c.out, r.Consumer, r.Stream, r.Subjects, r.APIPrefix, r.InboxPrefix)
		return answer{data: r, text: c.out + "\n", note: note}, nil
	}
	c.Flags().StringVar(&tenant, "tenant", "", "whose events it reads")
	c.outFlag("", "file for the seed; it must not exist")
	c.mustGive("tenant", "out")
}
