package measure

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"aob.dev/writ/bus/natsserver"
	"aob.dev/writ/executors"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/jetstream"
	"aob.dev/writ/storage/ledger"
)

// intentTurns is how many turns the intents come from.
const intentTurns = 16

func callers(n int) string {
	if n == 1 {
		return "1 caller"
	}
	return fmt.Sprint(n, " callers")
}

// intentRows measures whole intents: each is a read_lines of a task, submitted in
// process, decided, committed, dispatched over NATS with a ticket to a service
// that verifies it and answers at once, its outcome made durable and receipted.
// The ledger follows, as it does in production. The intents are signed
// beforehand, outside what is measured.
func intentRows(ctx context.Context, o Options) ([]Row, error) {
	rows, err := within(func(dir string) ([]Row, error) {
		w, err := newWorld(ctx, dir, time.Now)
		if err != nil {
			return nil, err
		}
		rows, err := w.intents(ctx, o)
		return rows, errors.Join(err, w.close())
	})
	if err != nil {
		return nil, err
	}
	onJetStream, err := within(func(dir string) ([]Row, error) { return intentsOnJetStream(ctx, dir, o) })
	return append(rows, onJetStream...), err
}

// intentsOnJetStream is intents with the journal of a cell, on three servers that sync each
// message, beside publishing to three such servers.
func intentsOnJetStream(ctx context.Context, dir string, o Options) (rows []Row, err error) {
	server, err := startSyncAlways(ctx, filepath.Join(dir, "cell"), cellServers)
	if err != nil {
		return nil, err
	}
	defer server.close()
	if err := jetstream.Create(ctx, server.js, cellServers); err != nil {
		return nil, err
	}
	w, err := newWorldOn(ctx, dir, time.Now, func(observe storage.Observer) (journalOf, error) {
		j, err := jetstream.Open(ctx, server.js, jetstream.Options{Instance: "bench", Observer: observe})
		if err == nil {
			err = j.Lead(ctx, func() error { return nil })
		}
		return j, err
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	stop, err := w.running(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	record := make([]byte, recordBytes)
	publish := func(ctx context.Context, _ int) error { return server.publish(ctx, record) }
	ours, one, many := w.lane(64), &lane{callers: 1, do: publish}, &lane{callers: 64, do: publish}
	if err := race(ctx, o.Time, ours, one, many); err != nil {
		return nil, err
	}
	return []Row{
		newRow("intents in a cell, 64 callers / one publish to 3 servers", ours.rate(), one.rate(), "per second", ours.n),
		newRow("intents in a cell, 64 callers / 64 publishes to 3 servers", ours.rate(), many.rate(), "per second", ours.n),
	}, nil
}

func (w *world) intents(ctx context.Context, o Options) (rows []Row, err error) {
	stop, err := w.running(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if rows, err = against(ctx, w.dir, o.Time, "intents", w.lane(1), w.lane(64)); err != nil {
		return nil, err
	}
	cpu, err := w.intentCPU(ctx, o.Time)
	return append(rows, cpu), err
}

// cpuIntents is how many intents a block of intentCPU has.
const cpuIntents = 1000

// intentCPU measures what 64 callers spend on one intent, in all of this process: router, bus,
// executor, journal, ledger and collector. Blocks of verifying the same intents take turns with it.
func (w *world) intentCPU(ctx context.Context, d time.Duration) (Row, error) {
	var signed [][]byte
	var verify []signature
	took, err := inTurns(ctx, d, func() (_ float64, err error) {
		if signed, err = w.signLines(cpuIntents); err == nil {
			verify, err = w.signingInputs(signed)
		}
		if err != nil {
			return 0, err
		}
		return block(len(verify), func(i int) error { return verify[i].verify() })
	}, func() (float64, error) {
		var next atomic.Int64
		start := cpuTime()
		err := together(64, func(int) (bool, error) {
			i := int(next.Add(1)) - 1
			if i >= len(signed) {
				return false, nil
			}
			return true, w.submitLines(ctx, signed[i])
		})
		return float64(cpuTime()-start) / float64(time.Microsecond) / cpuIntents, err
	})
	if err != nil {
		return Row{}, err
	}
	n := int64(len(took[1]) * cpuIntents)
	return newRow("CPU of one intent, 64 callers / ed25519.Verify", median(took[1]), median(took[0]), "µs CPU", n), nil
}

// running is overNATS with the ledger behind it.
func (w *world) running(ctx context.Context) (stop func() error, err error) {
	dispatching, err := w.overNATS(ctx)
	if err != nil {
		return nil, err
	}
	_, following, err := w.follow(ctx, make([]byte, 32))
	if err != nil {
		return nil, errors.Join(err, dispatching())
	}
	return func() error { return errors.Join(following(), dispatching()) }, nil
}

// overNATS has intents dispatched over a server in process to an executor of read_lines.
// stop ends both.
func (w *world) overNATS(ctx context.Context) (stop func() error, err error) {
	nats := filepath.Join(w.dir, "nats")
	if err := os.Mkdir(nats, 0o700); err != nil {
		return nil, err
	}
	row, _ := catalog.Builtin().Lookup("read_lines")
	server, err := natsserver.Start(ctx, natsserver.Options{
		Dir: nats, Executors: map[string][]string{row.Executor: {row.Type}},
		Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	ends := []func() error{func() error { server.Close(); return nil }}
	stop = func() (err error) {
		for _, end := range slices.Backward(ends) {
			err = errors.Join(err, end())
		}
		return err
	}
	core, err := server.Connect(ctx, natsserver.Router)
	if err != nil {
		return nil, errors.Join(err, stop())
	}
	ends = append(ends, func() error { core.Close(); return nil })
	serving, err := w.serveLines(ctx, server, row)
	if err != nil {
		return nil, errors.Join(err, stop())
	}
	ends = append(ends, serving)
	if err := w.start(ctx, core, intentTurns); err != nil {
		return nil, errors.Join(err, stop())
	}
	return stop, nil
}

// follow runs the ledger over the journal. end stops it and waits for it.
func (w *world) follow(ctx context.Context, secret []byte) (l *ledger.Ledger, end func() error, err error) {
	l, err = ledger.Open(ctx, ledger.Config{
		Dir: filepath.Join(w.dir, "ledger"), Origin: w.config.State.Origin(), Key: w.keys[intents.RoleLedger],
		Secret: secret, Records: w.journal, Log: w.config.Log,
	})
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	w.written.Store(l)
	return l, func() error {
		w.written.Store(nil)
		cancel()
		return errors.Join(<-ended, l.Close())
	}, nil
}

// serveLines runs the executor. stop ends it and waits for it.
func (w *world) serveLines(ctx context.Context, server *natsserver.Server, row catalog.Row) (stop func() error, err error) {
	conn, err := server.Connect(ctx, row.Executor)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ready, ended := make(chan struct{}), make(chan error, 1)
	directory := w.config.State
	go func() {
		ended <- executors.Serve(ctx, executors.Config{
			Bus: conn, Name: row.Executor, Version: "1.0.0", Origin: directory.Origin(), Now: w.config.Now,
			RouterKeys: intents.KeysFunc(func(kid string) (intents.Key, error) { return directory.View().Key(kid) }), Ready: ready,
		},
			map[string]executors.Handler{row.Type: func(context.Context, *executors.Intent) (*executors.Result, error) {
				return &executors.Result{Value: catalog.ReadLinesResult{Lines: []string{"a line of the file"}}}, nil
			}})
	}()
	stop = func() error {
		cancel()
		defer conn.Close()
		return <-ended
	}
	select {
	case <-ready:
		return stop, nil
	case err := <-ended:
		cancel()
		conn.Close()
		return nil, errors.Join(err, ctx.Err())
	}
}

// lane has intents submitted by so many callers.
func (w *world) lane(callers int) *lane {
	var signed [][]byte
	var next atomic.Int64
	return &lane{
		callers: callers,
		prepare: func(n int) (err error) {
			next.Store(0)
			signed, err = w.signLines(n)
			return err
		},
		do: func(ctx context.Context, _ int) error {
			i := int(next.Add(1)) - 1
			if i >= len(signed) {
				return errUsedUp
			}
			return w.submitLines(ctx, signed[i])
		},
	}
}

// submitLines submits a read that must succeed.
func (w *world) submitLines(ctx context.Context, signed []byte) error {
	a, err := w.router.Submit(ctx, signed)
	if err == nil && (a.Code != intents.OK || a.Receipt == "") {
		err = fmt.Errorf("an intent ended %s: %s", a.Code, a.Reason)
	}
	return err
}

// signLines signs n reads, with fresh grants.
func (w *world) signLines(n int) ([][]byte, error) {
	for i := range w.turns {
		grant, err := w.issueGrant(w.turns[i])
		if err != nil {
			return nil, err
		}
		w.turns[i].grant = grant
	}
	out := make([][]byte, n)
	for i := range out {
		var err error
		out[i], _, err = w.sign(intents.RoleTask, w.turns[i%len(w.turns)], "read_lines", catalog.ReadLines{FileID: "file_3f9a1c", Start: i, N: 50})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}
