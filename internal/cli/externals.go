package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"aob.dev/writ/bus"
	"aob.dev/writ/internal/datadir"
)

// typesOf are the types of an executor: the named ones, or all of its rows.
func typesOf(ctx context.Context, f *catalogFlags, name string, named []string) ([]string, error) {
	types, err := f.open(ctx)
	if err != nil {
		return nil, err
	}
	var own []string
	for _, r := range types.Rows() {
		if r.Executor == name {
			own = append(own, r.Type)
		}
	}
	slices.Sort(own)
	if !strings.HasPrefix(name, "x-") || len(own) == 0 {
		return nil, fmt.Errorf("no vendor's type in the catalog has the executor %s: name the directory of its rows with --catalog, or a router that has them with --catalog-url", name)
	}
	for _, typ := range named {
		if !slices.Contains(own, typ) {
			return nil, fmt.Errorf("%s is not a type of executor %s, which has %s", typ, name, strings.Join(own, ", "))
		}
	}
	if len(named) > 0 {
		own = named
	}
	return own, nil
}

// issuedExecutor is the output of `writ admin executor issue --json`: everything that a service needs,
// except the seed.
type issuedExecutor struct {
	Name        string   `json:"name"`
	Types       []string `json:"types"`
	Subjects    []string `json:"subjects"`
	Queue       string   `json:"queue"`
	Service     string   `json:"service"` // its name as NATS micro service
	InboxPrefix string   `json:"inbox_prefix"`
	SeedFile    string   `json:"seed_file"`
}

func executorIssue(c *command) {
	var f catalogFlags
	var types []string
	f.add(c)
	c.dataFlag()
	c.answer = func(args []string) (answer, error) {
		name := args[0]
		own, err := typesOf(c.Context(), &f, name, types)
		if err != nil {
			return answer{}, err
		}
		if err := issue(c, datadir.Executors, name, own, c.out); err != nil {
			return answer{}, err
		}
		res := issuedExecutor{Name: name, Types: own, Queue: name, Service: bus.ServiceName(name), InboxPrefix: bus.InboxPrefix(name), SeedFile: c.out}
		for _, typ := range own {
			res.Subjects = append(res.Subjects, bus.Exec(typ))
		}
		note := fmt.Sprintf("the seed of %s is in %s and nowhere else; with it the service may subscribe to %s in queue group %s, with inboxes %s.>\n",
			name, c.out, strings.Join(res.Subjects, ", "), res.Queue, res.InboxPrefix)
		return answer{data: res, text: c.out + "\n", note: note}, nil
	}
	c.Flags().StringSliceVar(&types, "types", nil, "intent types (default: all whose rows name the executor)")
	c.outFlag("", "file for the seed; it must not exist")
	c.mustGive("out")
}

// issue makes credentials for a service and writes the seed to a new file.
func issue(c *command, kind datadir.Externals, name string, types []string, out string) error {
	if _, err := os.Stat(out); err == nil {
		return fmt.Errorf("%s exists already, and it is not overwritten", out)
	}
	seed, err := kind.Admit(c.dir, name, types, time.Now())
	if errors.Is(err, datadir.ErrIssued) {
		return fmt.Errorf("%s has credentials already: run %s revoke %s, then issue new ones", name, strings.TrimSuffix(kind.Issue, " issue"), name)
	}
	if err != nil {
		return err
	}
	if err := writeNew(out, []byte(seed+"\n")); err != nil {
		return errors.Join(err, kind.Revoke(c.dir, name, time.Now()))
	}
	return nil
}

// externalList lists the services of one sort.
func externalList(kind datadir.Externals) func(c *command) {
	return func(c *command) {
		c.dataFlag()
		c.answer = func([]string) (answer, error) {
			list, err := kind.List(c.dir)
			if err != nil {
				return answer{}, malformed(err)
			}
			return answer{data: append([]datadir.External{}, list...), text: render("externals", list), none: "nobody has credentials: " + kind.Issue + " makes some"}, nil
		}
	}
}

// externalRevoke ends the credentials of a service.
func externalRevoke(kind datadir.Externals) func(c *command) {
	return func(c *command) {
		c.answer = func(args []string) (answer, error) {
			err := kind.Revoke(c.dir, args[0], time.Now())
			if errors.Is(err, fs.ErrNotExist) {
				err = fmt.Errorf("%s has no credentials: see %s list", args[0], strings.TrimSuffix(kind.Issue, " issue"))
			}
			return answer{data: map[string]string{"revoked": args[0]}, text: args[0] + "\n", note: "its credentials are revoked, and it is disconnected within a second\n"}, err
		}
		c.dataFlag()
	}
}

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
