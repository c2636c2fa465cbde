package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	textdiff "github.com/rogpeppe/go-internal/diff"
	"golang.org/x/term"

	"aob.dev/writ/executors/mcp"
	"aob.dev/writ/executors/skills/approval"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/config"
	"aob.dev/writ/internal/visible"
)

// skillServers are the skill servers that the file describes with members, and the files of their
// secrets.
func skillServers(c config.Config, env func(string) string) (list []mcp.Source, files []string, err error) {
	places := map[string]string{}
	for _, s := range c.SkillServers {
		source, err := mcp.ParseServer(s.Node, env)
		if err != nil {
			return nil, nil, fmt.Errorf("configuration %s%w", s.Place, err)
		}
		if other, taken := places[source.Name]; taken {
			return nil, nil, fmt.Errorf("configuration %s.name: %q is the name of %s already: give each server a name of its own", s.Place, source.Name, other)
		}
		places[source.Name] = s.Place
		list, files = append(list, source), append(files, source.SecretFiles...)
	}
	return list, files, nil
}

// maxToolsListed is how many tools that cannot be used the start names, of one server.
const maxToolsListed = 5

// skillLine lists the usable tools of a server, and why the others are not.
func skillLine(s approval.Server) string {
	if s.Err != nil {
		return fmt.Sprintf("down, and asked again until it answers: %v; start it, or correct skills", s.Err)
	}
	line := fmt.Sprintf("%d of %d tools can be used", s.Usable, s.Tools)
	if s.NeedApproval > 0 {
		line += fmt.Sprintf(" (%d only if people approve each call)", s.NeedApproval)
	}
	for i, x := range s.Others {
		if i == maxToolsListed {
			return line + fmt.Sprintf("; and %d more cannot", len(s.Others)-i)
		}
		line += fmt.Sprintf("; %s: %s", x.Tool, x.Why)
	}
	if len(s.Others) > 0 {
		line += "; see writ skill diff and writ skill approve"
	}
	return line
}

var cacheRows = []row{
	{use: "stats", short: "Count the kept answers for your calls, and list the newest", make: asks(request[catalog.CacheStatsResult]{
		path: "/agent/cache", text: shown[catalog.CacheStatsResult]("cached.table"),
	})},
	{use: "clear SCOPE KEY", short: "Clear kept answers: of a run or plan (workflow), of a skill, or one (key)", make: asks(request[catalog.CacheInvalidateResult]{
		method: http.MethodPost, path: "/agent/cache/invalidate", body: cacheClear,
		text: func(_ []string, got catalog.CacheInvalidateResult) string {
			return fmt.Sprintf("%d answers removed\n", got.Removed)
		},
	})},
}

func cacheClear(c *command) func(args []string) (any, error) {
	return func(args []string) (_ any, err error) {
		switch args[0] {
		case catalog.CacheWorkflow:
			args[1], err = c.wholeID(args[1], &ownPlans)
		case catalog.CacheSkill, catalog.CacheKey:
		default:
			err = usage(errors.New("SCOPE is workflow (KEY: a run or plan), skill (KEY: its id) or key (KEY: as writ skill cache stats prints it)"))
		}
		return catalog.CacheInvalidate{Scope: args[0], Key: args[1]}, err
	}
}

// connecting is a link to connect at.
type connecting struct {
	catalog.SkillConnectResult
	URL   string    `json:"url"`
	Until time.Time `json:"until"`
}

func connectTo(*command) func(args []string) (any, error) {
	return func(args []string) (any, error) { return map[string]string{"server": args[0]}, nil }
}

func disconnectedText(args []string, got catalog.SkillDisconnectResult) string {
	switch {
	case !got.Removed:
		return "there was no connection to " + args[0] + "\n"
	case !got.Revoked:
		return "disconnected from " + args[0] + "; its authorization server has not confirmed that the tokens end: end writ's access there, too\n"
	}
	return "disconnected from " + args[0] + ", and its authorization server has ended the tokens\n"
}

// skillVersions are a skill's approved version and the version that is declared now.
type skillVersions struct {
	pinned intents.Pin
	before *approval.Version // nil: no version is approved, or this process never saw it
	now    approval.Version
}

func skillDiff(c *command) {
	c.ValidArgsFunction = firstWord(c.completes(c.skillWords))
	c.answer = func(args []string) (answer, error) {
		s, err := c.versionsOf(args[0])
		if err != nil {
			return answer{}, err
		}
		var text strings.Builder
		err = s.print(&text)
		return answer{
			data: map[string]any{"name": s.now.Name, "server": s.now.Server, "approved": s.pinned.Digest, "declared": s.now.Digest},
			text: text.String(), end: unless(s.pinned.Digest == s.now.Digest, "it differs"),
		}, err
	}
	c.dataFlag()
	c.Flags().StringVar(&c.tenant, "tenant", "default", "tenant whose approvals to compare with")
}

// versionsOf reads the versions of a skill from the data directory.
func (c *command) versionsOf(name string) (s skillVersions, err error) {
	tenant := cmp.Or(c.tenant, "default")
	versions, err := approval.ReadVersions(c.dir)
	if err != nil {
		return s, malformed(err)
	}
	d, err := c.rebuildState()
	if err != nil {
		return s, err
	}
	rows, ok := d.Rows(tenant)
	if !ok {
		return s, fmt.Errorf("no such tenant: %s%s", tenant, didYouMean(tenant, d.Tenants()))
	}
	var known, ids []string
	for _, x := range versions {
		_, tool, _ := strings.Cut(x.Name, ".")
		known = append(known, x.Name, tool)
		if x.Declared && (x.Name == name || intents.Pin{Skill: x.Name}.OfTool(name)) {
			ids = append(ids, x.Name)
			s.now = x
		}
	}
	switch {
	case len(ids) == 0:
		return s, fmt.Errorf("no skill server of %s declares %q%s", c.dir, name, didYouMean(name, known))
	case len(ids) > 1:
		return s, usage(fmt.Errorf("%d skill servers have this tool: write one of %s", len(ids), strings.Join(ids, ", ")))
	case s.now.Fault != "":
		return s, fmt.Errorf("%s cannot be called: %s", s.now.Name, visible.Text(s.now.Fault, ""))
	case !s.now.For(tenant):
		return s, fmt.Errorf("%s is not there for the tenant %s: see tenants of its server in the configuration file", s.now.Name, tenant)
	}
	s.pinned, _ = s.now.Pin(rows.Skills)
	for i, x := range versions {
		if x.Digest == s.pinned.Digest {
			s.before = &versions[i]
		}
	}
	return s, nil
}

// print shows how the declared version differs from the approved one. If the approved
// one is not known, it shows the whole declared version.
func (s skillVersions) print(w io.Writer) error {
	was := "nothing is approved"
	if s.pinned.Digest != "" {
		was = "approved " + s.pinned.Digest + " as " + s.pinned.Effect
	}
	fmt.Fprintf(w, "%s of %s\n%s\ndeclared %s, with hints of effect %s\n", visible.Text(s.now.Name, ""), visible.Text(s.now.Server, ""), was, s.now.Digest, hintsOf(s.now))
	for _, note := range s.now.Unchecked {
		fmt.Fprintf(w, "not as declared: %s\n", visible.Text(note, ""))
	}
	after := versionText(s.now)
	switch {
	case s.pinned.Digest == s.now.Digest:
		fmt.Fprintln(w, "no difference")
		return nil
	case s.before == nil:
		if s.pinned.Digest != "" {
			fmt.Fprintln(w, "the approved version was never seen here; this is the whole new one:")
		}
		_, err := w.Write(after)
		return err
	}
	before := versionText(*s.before)
	if bytes.Equal(before, after) {
		_, err := fmt.Fprintln(w, "the declarations are the same, but the server is another one or has moved")
		return err
	}
	name := visible.Text(s.now.Name, "")
	_, err := w.Write(textdiff.Diff(name, before, name, after))
	return err
}

// hintsOf is a version's hints, and whether they are trusted.
func hintsOf(s approval.Version) string {
	claim := string(s.Claim)
	if s.Destructive == intents.Yes {
		claim += ", destructive"
	}
	if s.Claim != s.Effect {
		claim += fmt.Sprintf(" (only a claim; at first sight it counts as %s)", s.Effect)
	}
	return claim
}

// versionText is a version, one line for each property, with nothing hidden in it.
func versionText(s approval.Version) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "server: %s\nhints: %s\ndescription:\n", visible.Text(s.Server, ""), hintsOf(s))
	for line := range strings.SplitSeq(s.Description, "\n") {
		fmt.Fprintf(&b, "  | %s\n", visible.Text(line, "\t"))
	}
	for _, part := range []struct {
		name string
		raw  json.RawMessage
	}{{"input", s.InputSchema}, {"output", s.OutputSchema}, {"annotations", s.Annotations}} {
		var text bytes.Buffer
		if json.Indent(&text, part.raw, "  ", "  ") != nil {
			text.Reset()
			text.Write(part.raw)
		}
		fmt.Fprintf(&b, "%s:\n  %s\n", part.name, visible.Text(string(visible.JSON(text.Bytes())), "\n"))
	}
	return b.Bytes()
}

// declaredNow is the version to approve by its name, after a person has reviewed it and agreed.
func (c *command) declaredNow(name string, sure bool) (skillVersions, error) {
	s, err := c.versionsOf(name)
	if err != nil {
		return s, err
	}
	if err := s.print(c.std.Err); err != nil || sure {
		return s, err
	}
	in, ok := c.std.In.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return s, usage(errors.New("there is no terminal to ask on: look at it with writ skill diff, then give --yes or --digest"))
	}
	fmt.Fprintf(c.std.Err, "approve this version of %s? [y/N] ", visible.Text(s.now.Name, ""))
	answer, _ := bufio.NewReader(in).ReadString('\n')
	if a := strings.ToLower(strings.TrimSpace(answer)); a != "y" && a != "yes" {
		return s, errors.New("not approved")
	}
	return s, nil
}
