package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/spf13/cobra"

	"aob.dev/writ/executors/sandbox"
	"aob.dev/writ/internal/config"
)

func sandboxCommand(std IO) *cobra.Command {
	return group("sandbox", "Try the sandbox", sandboxRunCommand(std), sandboxProbeCommand(std), sandboxPrepareCommand(std))
}

func sandboxRunCommand(std IO) *cobra.Command {
	var in, driver, data string
	cmd := answering(std, &cobra.Command{
		Use: "run SCRIPT", Short: "Run one script as an order would", Args: cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, args []string) (answer, error) {
		script, err := os.ReadFile(args[0])
		if err != nil {
			return answer{}, malformed(err)
		}
		cfg := sandbox.Config{Dir: filepath.Join(data, "runtime"), Workers: -1}
		if driver != "" {
			cfg.Drivers = []string{driver}
		}
		return sandboxRun(cmd.Context(), cfg, string(script), in)
	})
	cmd.Flags().StringVar(&in, "input", "", "file that the script finds at input_file")
	cmd.Flags().StringVar(&driver, "driver", "", "one of the drivers; default: the best that passes its canary")
	cmd.Flags().StringVar(&data, "data", config.Default().Data, "data directory, for the prepared runtime")
	return cmd
}

func sandboxRun(ctx context.Context, cfg sandbox.Config, script, in string) (a answer, err error) {
	job := sandbox.Job{Script: script}
	if in != "" {
		f, err := os.Open(in) //nolint:gosec // G304: the user names the file
		if err != nil {
			return a, malformed(err)
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return a, malformed(err)
		}
		job.Input, job.InputSize = f, info.Size()
	}
	box, err := sandbox.Open(ctx, cfg)
	if err != nil {
		return a, err
	}
	defer box.Close()
	res, err := box.Run(ctx, job)
	if err != nil {
		return a, err
	}
	a = answer{text: printable(string(res.Output)), data: struct {
		Outcome    string          `json:"outcome"`
		Output     json.RawMessage `json:"output"`
		Error      string          `json:"error"`
		Driver     string          `json:"driver"`
		DurationMS int64           `json:"duration_ms"`
	}{string(res.Outcome), outputJSON(res.Output), res.Error, res.Driver, res.Duration.Milliseconds()}}
	if res.Outcome != sandbox.OK {
		a.end = fmt.Errorf("%s: %s", res.Outcome, res.Error)
	}
	return a, nil
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
