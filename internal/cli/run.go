package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"aob.dev/writ/internal/bus"
	"aob.dev/writ/internal/client"
	"aob.dev/writ/internal/durable"
)

func runCommand(std IO) *cobra.Command {
	var f personFlags
	var out string
	cmd := &cobra.Command{
		Use: "run QUESTION", Short: "Ask a running writ to do a task", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := f.client()
			if err != nil {
				return err
			}
			res := struct {
				PlanID   string          `json:"plan_id"`
				Status   string          `json:"status"`
				Response string          `json:"response,omitempty"`
				Data     json.RawMessage `json:"data,omitempty"`
				Failure  json.RawMessage `json:"failure,omitempty"`
			}{}
			p := painter(std, std.Err)
			res.PlanID, err = c.Run(cmd.Context(), args[0], func(frame client.Frame) error {
				switch bus.FrameKind(frame.Event) {
				case bus.FrameStatus:
					var s bus.StatusData
					if json.Unmarshal(frame.Data, &s) == nil && !f.asJSON {
						fmt.Fprintln(std.Err, p.dim(progress(s.State, s.Message, s.Step)))
					}
				case bus.FrameAnswer:
					var a bus.AnswerData
					if err := json.Unmarshal(frame.Data, &a); err != nil {
						return err
					}
					res.Response, res.Data = a.Response, a.Data
				case bus.FrameError:
					var e bus.ErrorData
					if err := json.Unmarshal(frame.Data, &e); err != nil {
						return err
					}
					res.Response, res.Failure = e.Reason, e.Failure
				case bus.FrameHeld:
					res.Status = "held"
					res.Data = frame.Data
				case bus.FrameDone:
					var d bus.DoneData
					if err := json.Unmarshal(frame.Data, &d); err != nil {
						return err
					}
					res.Status = d.Status
				default:
				}
				return nil
			})
			if err == nil && out != "" && res.Status == "complete" {
				err = saveData(cmd.Context(), c, res.Data, out)
			}
			if errors.Is(err, client.ErrCut) {
				err = fmt.Errorf("%w: %s", err, res.PlanID)
			}
			if err != nil {
				return no(err)
			}
			switch {
			case f.asJSON:
				err = printJSON(std.Out, res)
			case res.Status == "held":
				_, err = fmt.Fprintf(std.Err, "plan %s waits until people approve an order of it\n", res.PlanID)
			default:
				_, err = fmt.Fprintln(std.Out, printable(res.Response))
			}
			if err == nil && res.Status != "complete" && res.Status != "held" {
				return &exitError{code: ExitNo, err: errors.New("the task was not completed"), silent: true}
			}
			return err
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&out, "out", "", "file for the data behind the answer, all of it")
	return cmd
}

// saveData writes the data behind an answer to a file: what it holds, or the
// artifact that it names. The file is whole, or not there.
func saveData(ctx context.Context, c client.Client, data json.RawMessage, to string) error {
	if len(data) == 0 {
		return errors.New("the answer has no data")
	}
	err := durable.Stream(to, func(f io.Writer) error {
		var a bus.ArtifactData
		if json.Unmarshal(data, &a) == nil && a.Artifact != "" {
			return c.Artifact(ctx, a.Artifact, f)
		}
		_, err := f.Write(append(data, '\n'))
		return err
	})
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	return nil
}

// progress is one line about where a turn stands.
func progress(state, message string, step int) string {
	line := "· " + state
	if step > 0 {
		line = fmt.Sprintf("· step %d %s", step, strings.TrimPrefix(state, "step_"))
	}
	if message != "" {
		line += ": " + message
	}
	return printable(strings.ReplaceAll(line, "\n", " "))
}

// printable leaves out what would steer a terminal: texts of models and servers
// are shown, and no more than that.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, s)
}
