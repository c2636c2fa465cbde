package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"aob.dev/writ/internal/bus"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/upkeep"
	"aob.dev/writ/schemas"
)

func executorCommand(std IO) *cobra.Command {
	return group("executor", "Let services of others carry out their own intent types", executorIssue(std), executorList(std), executorRevoke(std), executorCheck(std))
}

// typesOf are the types of an executor: those named, or all that its rows say.
func typesOf(ctx context.Context, f *catalogFlags, name string, named []string) ([]string, map[string]typeRow, error) {
	rows, err := f.rows(ctx)
	if err != nil {
		return nil, nil, err
	}
	var own []string
	for typ, r := range rows {
		if r.Executor == name {
			own = append(own, typ)
		}
	}
	slices.Sort(own)
	if !strings.HasPrefix(name, "x-") || len(own) == 0 {
		return nil, nil, no(fmt.Errorf("no vendor's type in the catalog has the executor %s: name the directory of its rows with --catalog, or a router that has them with --catalog-url", name))
	}
	for _, typ := range named {
		if !slices.Contains(own, typ) {
			return nil, nil, no(fmt.Errorf("%s is not a type of executor %s, which has %s", typ, name, strings.Join(own, ", ")))
		}
	}
	if len(named) > 0 {
		own = named
	}
	return own, rows, nil
}

// issued is what `writ executor issue --json` prints: all that a service must know
// but the seed.
type issued struct {
	Name        string   `json:"name"`
	Types       []string `json:"types"`
	Subjects    []string `json:"subjects"`
	Queue       string   `json:"queue"`
	Service     string   `json:"service"` // its name as NATS micro service
	InboxPrefix string   `json:"inbox_prefix"`
	SeedFile    string   `json:"seed_file"`
}

func executorIssue(std IO) *cobra.Command {
	var f catalogFlags
	var data, out string
	var types []string
	cmd := answering(std, &cobra.Command{
		Use: "issue NAME --types T,… --out FILE", Short: "Write credentials for a service of somebody else", Args: cobra.ExactArgs(1),
		Long: "Make a NATS key for the executor NAME and write its seed to FILE, for the service alone.\n" +
			"With it the service may hear its own types, answer them, and nothing else. A running\n" +
			"writ with a NATS listener (--nats) lets it in within a second.",
	}, func(cmd *cobra.Command, args []string) (answer, error) {
		name := args[0]
		own, _, err := typesOf(cmd.Context(), &f, name, types)
		if err != nil {
			return answer{}, err
		}
		if _, err := os.Stat(out); err == nil {
			return answer{}, no(fmt.Errorf("%s: there is such a file, and it is not overwritten", out))
		}
		seed, err := datadir.IssueExecutor(data, name, own, time.Now())
		if errors.Is(err, datadir.ErrIssued) {
			return answer{}, no(fmt.Errorf("%s has credentials already: writ executor revoke %s, then issue new ones", name, name))
		}
		if err != nil {
			return answer{}, no(err)
		}
		if err := writeNew(out, []byte(seed+"\n")); err != nil {
			return answer{}, no(errors.Join(err, datadir.RevokeExecutor(data, name, time.Now())))
		}
		res := issued{Name: name, Types: own, Queue: name, Service: bus.ServiceName(name), InboxPrefix: bus.InboxPrefix(name), SeedFile: out}
		for _, typ := range own {
			res.Subjects = append(res.Subjects, bus.Exec(typ))
		}
		return answer{data: res, text: out + "\n", note: fmt.Sprintf("seed of %s in %s, kept nowhere else; it may hear %s in queue group %s, with inboxes %s.>\n", name, out, strings.Join(res.Subjects, ", "), res.Queue, res.InboxPrefix)}, nil
	}, f.add, dataFlag(&data))
	cmd.Flags().StringSliceVar(&types, "types", nil, "intent types (default: all whose rows name the executor)")
	cmd.Flags().StringVarP(&out, "out", "o", "", "file for the seed; must not be there yet")
	mustGive(cmd, "out")
	return cmd
}

func executorList(std IO) *cobra.Command {
	var data string
	return answering(std, &cobra.Command{
		Use: "list", Short: "List services of others that have credentials", Args: cobra.NoArgs,
	}, func(*cobra.Command, []string) (answer, error) {
		list, err := datadir.ExternalExecutors(data)
		if err != nil {
			return answer{}, malformed(err)
		}
		a := answer{data: append([]datadir.ExternalExecutor{}, list...)}
		for _, o := range list {
			state := "issued " + o.Issued.Format(time.RFC3339)
			if o.Revoked != nil {
				state = "revoked " + o.Revoked.Format(time.RFC3339)
			}
			a.text += fmt.Sprintf("%s\t%s\t%s\n", o.Name, strings.Join(o.Types, ","), state)
		}
		return a, nil
	}, dataFlag(&data))
}

func executorRevoke(std IO) *cobra.Command {
	var data string
	cmd := &cobra.Command{
		Use: "revoke NAME", Short: "End the credentials of a service; it is disconnected within a second", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			err := datadir.RevokeExecutor(data, args[0], time.Now())
			if errors.Is(err, fs.ErrNotExist) {
				return no(fmt.Errorf("%s has no credentials: see writ executor list", args[0]))
			}
			if err != nil {
				return no(err)
			}
			_, err = fmt.Fprintln(std.Out, args[0])
			return err
		},
	}
	dataFlag(&data)(cmd)
	return cmd
}

func executorCheck(std IO) *cobra.Command {
	var f catalogFlags
	var types []string
	var sample string
	var wait time.Duration
	cmd := answering(std, &cobra.Command{
		Use: "check NAME [--catalog DIR] [-- COMMAND ARG …]", Short: "Send a service the ticket vectors, whatever its language", Args: cobra.MinimumNArgs(1),
		Long: "Send a service good and forged tickets over NATS and judge its answers: what has a good\n" +
			"ticket must be done, everything else refused. Bus, credentials and keys are made for the\n" +
			"check, and COMMAND gets them as variables: WRIT_EXECUTOR, WRIT_NATS_URL,\n" +
			"WRIT_NATS_SEED_FILE, WRIT_URL. Without COMMAND they are printed, for a service that is\n" +
			"started by hand. The service carries out real orders: point it at nothing dear.",
	}, func(cmd *cobra.Command, args []string) (answer, error) {
		name, command := args[0], args[1:]
		own, rows, err := typesOf(cmd.Context(), &f, name, types)
		if err != nil {
			return answer{}, err
		}
		arguments := json.RawMessage(sample)
		if sample == "" {
			if arguments, err = skeleton(rows[own[0]]); err != nil {
				return answer{}, malformed(err)
			}
		}
		if arguments, err = canonicalObject(arguments); err != nil {
			return answer{}, usage(fmt.Errorf("--args: %w", err))
		}
		check, err := upkeep.OpenExecutorCheck(cmd.Context(), name, own, arguments, logger(std, "error"))
		if err != nil {
			return answer{}, no(err)
		}
		if check.Result, err = schemas.Compile(rows[own[0]].Result); err != nil {
			return answer{}, malformed(errors.Join(err, check.Close()))
		}
		results, err := runCheck(cmd.Context(), std, check, command, wait)
		if err := errors.Join(err, check.Close()); err != nil {
			return answer{}, no(err)
		}
		a := checkAnswer(painter(std, std.Out), name, results)
		if a.end == nil {
			fmt.Fprintf(std.Err, "%s: %d vectors passed\n", name, len(results))
		}
		return a, nil
	})
	f.add(cmd)
	cmd.Flags().StringSliceVar(&types, "types", nil, "intent types (default: all whose rows name the executor); the first is ordered")
	cmd.Flags().StringVar(&sample, "args", "", "arguments of that order, JSON (default: made from its schema)")
	cmd.Flags().DurationVar(&wait, "wait", 30*time.Second, "how long the service may take to come up")
	return cmd
}

// runCheck starts the service, if a command is given, and sends it every vector.
func runCheck(ctx context.Context, std IO, check *upkeep.ExecutorCheck, command []string, wait time.Duration) ([]upkeep.CheckResult, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if len(command) == 0 {
		fmt.Fprintln(std.Err, "start the service with:", strings.Join(check.Env(), " "))
	} else {
		service := exec.CommandContext(ctx, command[0], command[1:]...) //nolint:gosec // G204: the user names the command
		service.Env = append(os.Environ(), check.Env()...)
		service.Stdout, service.Stderr = std.Err, std.Err
		if err := service.Start(); err != nil {
			return nil, err
		}
		defer func() { cancel(); _ = service.Wait() }() // killed
	}
	up, stop := context.WithTimeout(ctx, wait)
	defer stop()
	if err := check.Wait(up); err != nil {
		return nil, fmt.Errorf("the service did not come up within %s: %w", wait, err)
	}
	var results []upkeep.CheckResult
	err := check.Run(ctx, func(r upkeep.CheckResult) { results = append(results, r) })
	return results, err
}

func checkAnswer(p paint, name string, results []upkeep.CheckResult) answer {
	failed := 0
	var text strings.Builder
	for _, r := range results {
		mark := p.green("pass")
		if !r.OK {
			failed++
			mark = p.red("FAIL")
		}
		fmt.Fprintf(&text, "%s  %-36s expected %-18s got %s %s  %s\n", mark, r.Name, r.Expect, r.Status, r.Got, p.dim(r.Doc))
	}
	a := answer{text: text.String(), data: struct {
		Executor string               `json:"executor"`
		Passed   int                  `json:"passed"`
		Failed   int                  `json:"failed"`
		Vectors  []upkeep.CheckResult `json:"vectors"`
	}{name, len(results) - failed, failed, results}}
	if failed > 0 || len(results) == 0 {
		a.end = fmt.Errorf("%s: %d of %d vectors failed: it must not serve", name, failed, len(results))
	}
	return a
}
