package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"aob.dev/writ/executors"
	"aob.dev/writ/executors/python"
	"aob.dev/writ/executors/sandbox"
	"aob.dev/writ/internal/datadir"
)

// openSandbox opens the sandbox of scripts. If it cannot be had, or is weaker than the one that
// the data directory had before, exec_python is refused with the reason, and all else works.
func (n *Node) openSandbox(ctx context.Context) error {
	if known := sandbox.DriverNames(); n.cfg.Driver != "" && !slices.Contains(known, n.cfg.Driver) {
		return fmt.Errorf("sandbox: unknown driver %q: there are %s", n.cfg.Driver, strings.Join(known, ", "))
	}
	box, err := sandbox.Open(ctx, sandbox.Config{Dir: datadir.Runtime(n.cfg.Dir), Minimum: n.cfg.Driver})
	if err == nil {
		if err = sandbox.NoWeaker(datadir.SandboxFile(n.cfg.Dir), box.Driver(), n.cfg.Driver != ""); err != nil {
			err = errors.Join(err, box.Close())
		}
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		n.noSandbox = err.Error()
		n.cfg.Log.ErrorContext(ctx, "scripts are refused, as there is no sandbox for them: see writ doctor, and start again", slog.String("error", n.noSandbox))
		return nil //nolint:nilerr // exec_python alone is refused
	}
	n.box = box
	n.cfg.Log.InfoContext(ctx, "sandbox", slog.String("driver", n.box.Driver()), slog.String("python", n.box.Python()))
	return nil
}

// scriptHandlers are the handlers of scripts.
func (n *Node) scriptHandlers() map[string]executors.Handler {
	if n.box == nil {
		return python.Refusing(n.noSandbox)
	}
	return python.Handlers(n.box, n.blobs)
}
