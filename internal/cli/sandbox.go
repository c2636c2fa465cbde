package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/spf13/cobra"

	"aob.dev/writ/executors/sandbox"
	"aob.dev/writ/internal/config"
)

func sandboxCommand(std IO) *cobra.Command {
	cmd := &cobra.Command{Use: "sandbox", Short: "Try the sandbox", Args: oneOfThese, RunE: help}
	cmd.AddCommand(sandboxRunCommand(std), sandboxProbeCommand(std), sandboxPrepareCommand(std))
	return cmd
}

func sandboxRunCommand(std IO) *cobra.Command {
	var in, driver, data string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "run SCRIPT", Short: "Run one script as an order would", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			script, err := os.ReadFile(args[0])
			if err != nil {
				return malformed(err)
			}
			cfg := sandbox.Config{Dir: filepath.Join(data, "runtime"), Workers: -1}
			if driver != "" {
				cfg.Drivers = []string{driver}
			}
			return sandboxRun(cmd.Context(), std, cfg, string(script), in, asJSON)
		},
	}
	cmd.Flags().StringVar(&in, "input", "", "file that the script finds at input_file")
	cmd.Flags().StringVar(&driver, "driver", "", "one of the drivers; default: the best that passes its canary")
	cmd.Flags().StringVar(&data, "data", config.Default().Data, "data directory, for the prepared runtime")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print data")
	return cmd
}

func sandboxRun(ctx context.Context, std IO, cfg sandbox.Config, script, in string, asJSON bool) error {
	job := sandbox.Job{Script: script}
	if in != "" {
		f, err := os.Open(in) //nolint:gosec // G304: the user names the file
		if err != nil {
			return malformed(err)
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return malformed(err)
		}
		job.Input, job.InputSize = f, info.Size()
	}
	box, err := sandbox.Open(ctx, cfg)
	if err != nil {
		return no(err)
	}
	defer box.Close()
	res, err := box.Run(ctx, job)
	if err != nil {
		return no(err)
	}
	if asJSON {
		err = printJSON(std.Out, struct {
			Outcome    string          `json:"outcome"`
			Output     json.RawMessage `json:"output"`
			Error      string          `json:"error"`
			Driver     string          `json:"driver"`
			DurationMS int64           `json:"duration_ms"`
		}{string(res.Outcome), outputJSON(res.Output), res.Error, res.Driver, res.Duration.Milliseconds()})
	} else {
		_, err = io.WriteString(std.Out, printable(string(res.Output)))
	}
	if err == nil && res.Outcome != sandbox.OK {
		return no(fmt.Errorf("%s: %s", res.Outcome, res.Error))
	}
	return err
}

// outputJSON is what the script printed: its JSON document, or a string.
func outputJSON(out []byte) json.RawMessage {
	if json.Valid(out) {
		return out
	}
	text, err := json.Marshal(string(out))
	if err != nil {
		return nil
	}
	return text
}

func versionCommand(std IO) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(std.Out, "writ", version())
			return err
		},
	}
}

// version of the binary and of its Go.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown)"
	}
	return info.Main.Version + " " + info.GoVersion
}
