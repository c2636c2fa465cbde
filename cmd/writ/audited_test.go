package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"aob.dev/writ/audit"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/upkeep"
)

// unaudited are the scripts whose data directory is not audited at their end, and why.
var unaudited = map[string]string{
	"backup":         "it ends with a journal that was put back from before its ledger",
	"large_registry": "it ends with a blob that it has removed",
}

// second is the second implementation of the auditor, if its dependencies are available.
var second func(ctx context.Context, trust audit.Trust, bundle []byte) error

// audited ends a script with the audit of its data directory, where a log has begun and no process uses
// it: it is sound, and the whole log verifies and comes out the same when it is decided again.
func audited(e *testscript.Env, data string) func() {
	name := strings.TrimPrefix(filepath.Base(e.WorkDir), "script-")
	return func() {
		if begun, err := datadir.HasJournal(data); err != nil || !begun || unaudited[name] != "" {
			return
		}
		if err := sound(context.Background(), data); err != nil {
			e.T().Fatal(fmt.Sprintf("the log that the script leaves: %v", err))
		}
	}
}

func sound(ctx context.Context, data string) (err error) {
	h, err := upkeep.Fsck(ctx, data, nil)
	if err != nil {
		return err
	}
	if !h.OK || len(h.SetAside) > 0 {
		return fmt.Errorf("fsck: %w, set aside %v", h.FirstBad, h.SetAside)
	}
	a, err := datadir.OpenArchive(ctx, data)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	var bundle bytes.Buffer
	if _, err := audit.Export(ctx, &bundle, a.Source, audit.Selection{}); errors.Is(err, audit.ErrNoCheckpoint) {
		return nil // the script killed its writ before the first one
	} else if err != nil {
		return err
	}
	trust := audit.NewTrust(a.Root)
	r, err := audit.Verify(ctx, bytes.NewReader(bundle.Bytes()), audit.Options{Trust: &trust, Replay: true})
	if err == nil && !r.OK {
		err = r.FirstBad
	}
	if err == nil && second != nil {
		err = second(ctx, trust, bundle.Bytes())
	}
	return err
}
