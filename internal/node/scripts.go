package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"

	"aob.dev/writ/executors"
	"aob.dev/writ/executors/python"
	"aob.dev/writ/executors/sandbox"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/durable"
)

// openSandbox opens the sandbox of scripts. If it cannot be had, or is weaker than the one that
// the data directory had before, exec_python is refused with the reason, and all else works.
func (n *Node) openSandbox(ctx context.Context) error {
	if known := sandbox.DriverNames(); n.cfg.Driver != "" && !slices.Contains(known, n.cfg.Driver) {
		return fmt.Errorf("sandbox: unknown driver %q: there are %s", n.cfg.Driver, strings.Join(known, ", "))
	}
	box, err := sandbox.Open(ctx, sandbox.Config{Dir: datadir.Runtime(n.cfg.Dir), Minimum: n.cfg.Driver})
	if err == nil {
		if err = n.noWeaker(box.Driver()); err != nil {
			err = errors.Join(err, box.Close())
		}
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		n.noSandbox = err.Error()
		n.cfg.Log.ErrorContext(ctx, "scripts are refused, as there is no sandbox for them: see writ sandbox probe, and start again", slog.String("error", n.noSandbox))
		return nil //nolint:nilerr // exec_python alone is refused
	}
	n.box = box
	n.cfg.Log.InfoContext(ctx, "sandbox", slog.String("driver", n.box.Driver()), slog.String("python", n.box.Python()))
	return nil
}

// noWeaker refuses a driver that is weaker than what the data directory had before, unless the
// operator has set one: another kernel must not weaken the sandbox unnoticed. A crash leaves
// the old name.
func (n *Node) noWeaker(driver string) error {
	if n.cfg.Driver != "" {
		return nil
	}
	path := datadir.SandboxFile(n.cfg.Dir)
	raw, err := os.ReadFile(path) //nolint:gosec // G304: a file of the data directory
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	before, known := strings.TrimSpace(string(raw)), sandbox.DriverNames()
	if before != "" && slices.Index(known, before) < slices.Index(known, driver) { // one that is not known is taken for better
		return fmt.Errorf("this machine has no better sandbox than %s, and this data directory had %s: mend the machine, or accept it with --sandbox %s", driver, before, driver)
	}
	if before == driver {
		return nil
	}
	return durable.Write(path, []byte(driver+"\n"))
}

// scriptHandlers are the handlers of scripts.
func (n *Node) scriptHandlers() map[string]executors.Handler {
	if n.box == nil {
		return python.Refusing(n.noSandbox)
	}
	return python.Handlers(n.box, n.blobs)
}
