package cli

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"aob.dev/writ/audit"
	"aob.dev/writ/executors/skills/approval"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/datadir"
)

// idSource is where a command looks up the id that a prefix stands for. Only the command line
// takes prefixes: writ is always sent the whole id.
type idSource struct {
	form idForm
	noun string // name of the things with these ids, for messages
	list string // the command that lists them

	remote bool // read from a running writ
	each   func(c *command, prefix string) iter.Seq2[listedID, error]
}

// listedID is an id and its description.
type listedID struct{ id, about string }

type idForm struct {
	name          string
	begin         string // may be left out
	whole, prefix string // regular expressions
	needs         string // of a prefix, for messages
}

// has reports whether an id has a form.
func has(id, form string) bool { return regexp.MustCompile(form).MatchString(id) }

func digestForm(name string) idForm {
	return idForm{
		name, "sha256:", `^sha256:[0-9a-f]{64}$`, `^sha256:[0-9a-f]{6,63}$`,
		"at least 6 hex digits of it, with or without sha256:",
	}
}

var (
	intentForm, documentForm = digestForm("intent_id"), digestForm("document id")
	// An id of writ's own making is known to be whole by its length. Another signer may make shorter ones.
	planForm = idForm{
		"plan or run id", "", `^plan_[0-9a-z]{26,27}$`, `^plan_[0-9A-Za-z_.-]{6,}$`,
		"plan_ and at least 6 characters behind it",
	}
)

var (
	pendingIntents = idSource{intentForm, "intent that waits for you or that you asked for", "writ approvals list", true, remoteIDs(approvalsPath+"?limit=100", "after")}
	ownIntents     = idSource{intentForm, "intent that you may read", "writ audit search", true, remoteIDs("/v1/intents?limit=1000", "cursor")}
	ownPlans       = idSource{planForm, "plan that you may read", "writ plan list", true, remoteIDs(plansPath+"?limit=100", "after")}
	ownRuns        = idSource{planForm, "run that you may read", "writ workflow list", true, remoteIDs(runsPath+"?limit=100", "after")}

	ownDocuments = idSource{documentForm, "document that you may read", "writ kb list", true, remoteIDs(documentsPath+"?limit=100", "after")}

	recordedIntents = idSource{intentForm, "intent in the record of the data directory", "writ audit search", false, recordedIDs(func(s audit.RecordView) listedID {
		return listedID{s.IntentID, s.Type + " " + string(s.Code)}
	})}
	recordedPlans = idSource{planForm, "plan in the record of the data directory", "writ plan list", false, recordedIDs(func(s audit.RecordView) listedID {
		return listedID{s.Plan, "of " + s.User + ", " + s.At}
	})}
)

// wholeID is the id that a person means: a whole one unchanged, without a look-up, or the one with
// the given prefix. It is printed before anything is done.
func (c *command) wholeID(given string, from *idSource) (string, error) {
	id := strings.TrimSuffix(given, "…") // as lists shorten ids
	if !strings.HasPrefix(id, from.form.begin) {
		id = from.form.begin + id
	}
	switch {
	case has(id, from.form.whole):
		return id, nil
	case !has(id, from.form.prefix):
		return "", usage(fmt.Errorf("%q is no %s: give the whole id, or %s (%s)", given, from.form.name, from.form.needs, from.list))
	}
	found := map[string]string{}
	for one, err := range from.each(c, id) {
		switch {
		case err != nil:
			return "", from.lookupFailure(err)
		case one.id == id:
			return id, nil
		case strings.HasPrefix(one.id, id):
			found[one.id] = one.about
		}
	}
	ids := slices.Sorted(maps.Keys(found))
	switch len(ids) {
	case 0:
		return "", fmt.Errorf("%s: the id of no %s begins with %s: %s shows them", intents.NotFound, from.noun, id, from.list)
	case 1:
		fmt.Fprintf(c.std.Err, "%s is %s\n", given, printable(ids[0]))
		return ids[0], nil
	}
	return "", usage(errors.New(ambiguous(id, ids, found)))
}

// wholeIn puts the whole id in the place of a prefix that a flag has.
func (c *command) wholeIn(id *string, from *idSource) (err error) {
	if has(*id, from.form.prefix) && !has(*id, from.form.whole) {
		*id, err = c.wholeID(*id, from)
	}
	return err
}

// mostCandidates is how many ids a message lists.
const mostCandidates = 20

func ambiguous(prefix string, ids []string, about map[string]string) string {
	text := fmt.Sprintf("%s is not unique: %d ids begin with it. Give more of the one that you mean:", prefix, len(ids))
	for i, id := range ids {
		if i == mostCandidates {
			return text + fmt.Sprintf("\n  and %d more", len(ids)-i)
		}
		text += "\n  " + id + "  " + oneLine(about[id], 80)
	}
	return text
}

// lookupFailure is a failure to look a prefix up. Without an answer of writ the whole id does not
// work, either.
func (from *idSource) lookupFailure(err error) error {
	if from.remote && !errors.Is(err, errLongList) {
		return err
	}
	code := ExitNo
	if exit, ok := errors.AsType[*exitError](err); ok {
		code, err = exit.code, exit.err
	}
	return &exitError{code: code, err: fmt.Errorf("%w\nonly a prefix has to be looked up: the whole id works without", err)}
}

var errLongList = errors.New("the list is too long to tell")

// mostIDPages bounds the pages of a list that are searched.
const mostIDPages = 50

// remoteIDs are the ids of a list of the gateway, newest first. Not reaching its end is an error,
// since a prefix may then not be unique.
func remoteIDs(path, cursor string) func(*command, string) iter.Seq2[listedID, error] {
	return func(c *command, prefix string) iter.Seq2[listedID, error] {
		return func(yield func(listedID, error) bool) {
			at, oldest := path, openedSince(prefix)
			for range mostIDPages {
				var page struct {
					Approvals []idEntry `json:"approvals"`
					Intents   []idEntry `json:"intents"`
					Plans     []idEntry `json:"plans"`
					Documents []idEntry `json:"documents"`
					Cursor    string    `json:"cursor"`
				}
				if err := c.get(at, &page); err != nil {
					yield(listedID{}, err)
					return
				}
				for _, e := range slices.Concat(page.Approvals, page.Intents, page.Plans, page.Documents) {
					if !oldest.IsZero() && e.CreatedAt.Before(oldest) || !yield(e.listed(prefix), nil) {
						return
					}
				}
				if page.Cursor == "" {
					return
				}
				at = path + "&" + cursor + "=" + url.QueryEscape(page.Cursor)
			}
			yield(listedID{}, fmt.Errorf("%w which id begins with %s", errLongList, prefix))
		}
	}
}

// idEntry is an entry of any of the lists.
type idEntry struct {
	IntentID   string    `json:"intent_id"`
	PlanID     string    `json:"plan_id"`
	DocumentID string    `json:"document_id"`
	Type       string    `json:"type"`
	Task       string    `json:"task"`
	Title      string    `json:"title"`
	CreatedAt  time.Time `json:"created_at"` // of a plan
}

func (e idEntry) listed(prefix string) listedID {
	switch {
	case strings.HasPrefix(prefix, "plan_"):
		return listedID{e.PlanID, e.Task}
	case e.DocumentID != "":
		return listedID{e.DocumentID, e.Title}
	}
	return listedID{e.IntentID, e.Type}
}

// openedSince is the earliest time at which a plan with this id prefix was opened, as ids of plans
// contain their time; zero: unknown.
func openedSince(prefix string) time.Time {
	digits, ok := strings.CutPrefix(prefix, "plan_")
	ms, err := strconv.ParseInt((digits + strings.Repeat("0", 11))[:11], 36, 64)
	if !ok || err != nil {
		return time.Time{}
	}
	return time.UnixMilli(ms).Add(-intents.Leeway)
}

// recordedIDs are those of the local record.
func recordedIDs(of func(audit.RecordView) listedID) func(*command, string) iter.Seq2[listedID, error] {
	return func(c *command, _ string) iter.Seq2[listedID, error] {
		return func(yield func(listedID, error) bool) {
			left := false
			err := c.archive(func(a *datadir.Archive) error {
				for s, err := range audit.Read(c.Context(), a.Records, 0) {
					if err != nil {
						return err
					}
					if one := of(s); one.id != "" && !yield(one, nil) {
						left = true
						return nil
					}
				}
				return nil
			})
			if err != nil && !left {
				yield(listedID{}, err)
			}
		}
	}
}

// Bounds of shell completion.
const (
	completionTime = time.Second
	completionMost = 50
)

// completion yields words that a shell may complete, each with a description. Failed look-ups yield
// nothing: a shell has no place for messages.
type completion func(yield func(word, about string) bool)

// completes asks for words: of a running writ, or of its data directory.
func (c *command) completes(words func(begun string) completion) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, begun string) (list []cobra.Completion, then cobra.ShellCompDirective) {
		then = cobra.ShellCompDirectiveNoFileComp
		if _, err := aim(cmd, c.std); err != nil {
			return nil, then
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
		defer cancel()
		cmd.SetContext(ctx)
		words(begun)(func(word, about string) bool {
			if strings.HasPrefix(word, begun) {
				list = append(list, cobra.CompletionWithDesc(printable(word), oneLine(about, 60)))
			}
			return len(list) < completionMost
		})
		return list, then
	}
}

// firstWord completes the first argument alone.
func firstWord(words cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return words(cmd, args, begun)
	}
}

// idWords are the ids of a source.
func (c *command) idWords(of *idSource) func(string) completion {
	return func(begun string) completion {
		return func(yield func(word, about string) bool) {
			for one, err := range of.each(c, begun) {
				if err != nil || !yield(one.id, one.about) {
					return
				}
			}
		}
	}
}

// schemaWords are the names of the agents or workflows of a running writ.
func (c *command) schemaWords(kind string) func(string) completion {
	return func(string) completion {
		return func(yield func(word, about string) bool) {
			var rows []catalog.SchemaRow
			if c.get("/schemas/?kind="+url.QueryEscape(kind), &rows) != nil {
				return
			}
			for _, r := range rows {
				if !yield(r.Name, r.Kind) {
					return
				}
			}
		}
	}
}

// skillWords are the names of the skills that the servers of the data directory declare.
func (c *command) skillWords(string) completion {
	return func(yield func(word, about string) bool) {
		versions, _ := approval.ReadVersions(c.dir)
		for _, x := range versions {
			if x.Declared && !yield(x.Name, x.Description) {
				return
			}
		}
	}
}

// agentFlag declares the flag for the agent that is asked.
func (c *command) agentFlag(help string) *string {
	agent := c.Flags().String("agent", "", help+" (default: run_agent of the configuration, else the planner)")
	_ = c.RegisterFlagCompletionFunc("agent", c.completes(c.schemaWords(catalog.KindAgent))) // the flag exists
	return agent
}
