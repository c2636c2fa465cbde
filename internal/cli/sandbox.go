package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"aob.dev/writ/executors/sandbox"
	"aob.dev/writ/executors/sandbox/escape"
	"aob.dev/writ/internal/config"
)

func sandboxRunCommand(c *command) {
	c.runtimeFlag()
	in := c.Flags().String("input", "", "file that the script finds at input_file")
	driver := c.Flags().String("driver", "", "sandbox driver (default: the best one that works here)")
	c.answer = func(args []string) (answer, error) {
		script, err := readFile(args[0])
		if err != nil {
			return answer{}, err
		}
		return sandboxRun(c.Context(), sandbox.Config{Dir: c.runtime(), Driver: *driver, Workers: -1}, string(script), *in)
	}
}

// runtimeFlag declares the data directory with the prepared Python runtime.
func (c *command) runtimeFlag() {
	c.Flags().StringVar(&c.dir, "data", config.Default().Data, "data directory, for the prepared runtime")
}

func (c *command) runtime() string { return filepath.Join(c.dir, "runtime") }

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

func sandboxProbe(c *command) {
	c.runtimeFlag()
	driver := c.Flags().String("driver", "", "only this driver")
	c.answer = func([]string) (answer, error) {
		drivers := sandbox.DriverNames()
		if *driver != "" {
			drivers = []string{*driver}
		}
		m := matrix{drivers: map[string]string{}}
		if err := m.fill(c.Context(), c.std.Err, c.runtime(), drivers); err != nil {
			return answer{}, err
		}
		return answer{text: m.text(), end: m.verdict(), data: struct {
			Drivers  map[string]string `json:"drivers"`
			Findings []escape.Finding  `json:"findings"`
		}{m.drivers, m.findings}}, nil
	}
}

func sandboxPrepare(c *command) {
	c.runtimeFlag()
	c.answer = func([]string) (answer, error) {
		p, err := sandbox.Prepare(c.Context(), sandbox.Config{Dir: c.runtime()})
		return answer{data: map[string]string{"path": p.Path, "python": p.Python}, text: p.Path + "\n"}, err
	}
}

// matrix is the result of each probe under each driver.
type matrix struct {
	drivers  map[string]string // driver: why it cannot be used here; empty: it can
	findings []escape.Finding
}

// fill runs all probes. It prints to log why a driver cannot be used.
func (m *matrix) fill(ctx context.Context, log io.Writer, dir string, drivers []string) (err error) {
	probes, err := escape.Probes()
	if err != nil {
		return err
	}
	bait, err := escape.LayBait(os.TempDir())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bait.Remove()) }()
	for _, name := range drivers {
		box, err := sandbox.Open(ctx, sandbox.Config{Dir: dir, Driver: name, Workers: -1})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			m.drivers[name] = err.Error()
			fmt.Fprintln(log, err)
			continue
		}
		m.drivers[name] = ""
		fmt.Fprintf(log, "%s: %d probes\n", name, len(probes))
		for _, p := range probes {
			f, tried := p.Try(ctx, box, bait)
			if err = tried; err != nil {
				break
			}
			m.findings = append(m.findings, f)
		}
		if err = errors.Join(err, box.Close()); err != nil {
			return err
		}
	}
	return nil
}

func (m *matrix) text() string {
	var used []string
	for _, name := range sandbox.DriverNames() {
		if why, tried := m.drivers[name]; tried && why == "" {
			used = append(used, name)
		}
	}
	text := aligned(func(t io.Writer) {
		fmt.Fprintf(t, "probe\tlayers\t%s\n", strings.Join(used, "\t"))
		for i, first := range m.findings[:len(m.findings)/max(len(used), 1)] {
			fmt.Fprintf(t, "%s\t%s", first.Probe, strings.Join(first.Layers, ","))
			for j := i; j < len(m.findings); j += len(m.findings) / len(used) {
				fmt.Fprintf(t, "\t%s", m.findings[j].Verdict)
			}
			fmt.Fprintln(t)
		}
	})
	for _, f := range m.findings {
		if f.Detail != "" {
			text += fmt.Sprintf("%s under %s: %s: %s\n", f.Probe, f.Driver, f.Verdict, printable(f.Detail))
		}
	}
	return text
}

func (m *matrix) verdict() error {
	bad := slices.IndexFunc(m.findings, func(f escape.Finding) bool { return !f.Holds() })
	switch {
	case len(m.findings) == 0:
		return errors.New("no sandbox driver works on this machine")
	case bad >= 0:
		return fmt.Errorf("probe %s under %s: %s", m.findings[bad].Probe, m.findings[bad].Driver, m.findings[bad].Verdict)
	}
	return nil
}
