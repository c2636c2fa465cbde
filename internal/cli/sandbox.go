package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"aob.dev/writ/executors/sandbox"
	"aob.dev/writ/internal/config"
	"aob.dev/writ/internal/datadir"
)

func sandboxRunCommand(c *command) {
	c.Flags().StringVar(&c.dir, "data", config.Default().Data, "data directory, for its Python runtime")
	in := c.Flags().String("input", "", "file that the script finds at input_file")
	driver := c.Flags().String("driver", "", "sandbox driver (default: the best one that works here)")
	c.answer = func(args []string) (answer, error) {
		script, err := readFile(args[0])
		if err != nil {
			return answer{}, err
		}
		return sandboxRun(c.Context(), sandbox.Config{Dir: datadir.Runtime(c.dir), Driver: *driver, Workers: -1}, string(script), *in)
	}
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

// outputJSON is the script's output: its JSON document, or a string.
func outputJSON(out []byte) json.RawMessage {
	if !json.Valid(out) {
		out, _ = json.Marshal(string(out)) // a string always can
	}
	return out
}
