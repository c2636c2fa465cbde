package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"aob.dev/writ/executors/sandbox"
	"aob.dev/writ/executors/sandbox/escape"
	"aob.dev/writ/internal/config"
)

func sandboxProbeCommand(std IO) *cobra.Command {
	var driver, data string
	cmd := answering(std, &cobra.Command{
		Use: "probe", Short: "Try to escape from every driver that holds here", Args: cobra.NoArgs,
		Long: "Run the escape suite under every driver that holds on this machine, and print\n" +
			"what became of each probe. Exits 1 if one got through, or no driver holds.\n\n" +
			"  blocked  it did not get through\n" +
			"  open     it got through where docs/sandbox.md says that it does\n" +
			"  ESCAPED  it got through\n" +
			"  broken   it proved nothing",
	}, func(cmd *cobra.Command, _ []string) (answer, error) {
		drivers := sandbox.DriverNames()
		if driver != "" {
			drivers = []string{driver}
		}
		m := matrix{drivers: map[string]string{}}
		if err := m.fill(cmd.Context(), std.Err, filepath.Join(data, "runtime"), drivers); err != nil {
			return answer{}, no(err)
		}
		return answer{text: m.text(), end: m.verdict(), data: struct {
			Drivers  map[string]string `json:"drivers"`
			Findings []escape.Finding  `json:"findings"`
		}{m.drivers, m.findings}}, nil
	})
	cmd.Flags().StringVar(&driver, "driver", "", "only this driver")
	cmd.Flags().StringVar(&data, "data", config.Default().Data, "data directory, for the prepared runtime")
	return cmd
}

func sandboxPrepareCommand(std IO) *cobra.Command {
	var data string
	cmd := answering(std, &cobra.Command{
		Use: "prepare", Short: "Make the Python runtime that the first start would make", Args: cobra.NoArgs,
	}, func(cmd *cobra.Command, _ []string) (answer, error) {
		p, err := sandbox.Prepare(cmd.Context(), sandbox.Config{Dir: filepath.Join(data, "runtime")})
		if err != nil {
			return answer{}, no(err)
		}
		return answer{data: map[string]string{"path": p.Path, "python": p.Python}, text: p.Path + "\n"}, nil
	})
	cmd.Flags().StringVar(&data, "data", config.Default().Data, "data directory, for the prepared runtime")
	return cmd
}

// matrix is what became of each probe under each driver.
type matrix struct {
	drivers  map[string]string // driver: why it is not used here; empty: it is
	findings []escape.Finding
}

// fill runs all probes. Why a driver cannot be used is told on log.
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
		box, err := sandbox.Open(ctx, sandbox.Config{Dir: dir, Drivers: []string{name}, Workers: -1})
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
		err = m.try(ctx, box, probes, bait)
		if err = errors.Join(err, box.Close()); err != nil {
			return err
		}
	}
	return nil
}

func (m *matrix) try(ctx context.Context, box escape.Runner, probes []escape.Probe, bait *escape.Bait) error {
	for _, p := range probes {
		f, err := p.Try(ctx, box, bait)
		if err != nil {
			return err
		}
		m.findings = append(m.findings, f)
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
		return no(errors.New("no driver holds on this machine"))
	case bad >= 0:
		return no(fmt.Errorf("probe %s under %s: %s", m.findings[bad].Probe, m.findings[bad].Driver, m.findings[bad].Verdict))
	}
	return nil
}
