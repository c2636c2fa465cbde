package executors_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/micro"

	"aob.dev/writ/bus"
	"aob.dev/writ/bus/natsserver"
	"aob.dev/writ/executors"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/testing/executortest"
)

// TestServeOnTheBus: an executor is a micro service named writ-<Name> with one
// endpoint a type; a router reaches it, nobody else answers for it, and running
// intents end before Serve returns.
func TestServeOnTheBus(t *testing.T) {
	server, err := natsserver.Start(t.Context(), natsserver.Options{
		Dir: t.TempDir(), Executors: map[string][]string{"files": {"read_lines", "skill.call"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	connect := func(user string) bus.Conn {
		c, err := server.Connect(t.Context(), user)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	begun, goOn := make(chan struct{}), make(chan struct{})
	handlers := answering(ok)
	handlers["skill.call"] = func(ctx context.Context, o *executors.Intent) (*executors.Result, error) {
		close(begun)
		<-goOn
		return ok(ctx, o)
	}
	e := executortest.New(t, "files", nil, handlers)
	ctx, stop := context.WithCancel(t.Context())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- executors.Serve(ctx, executors.Config{
			Bus: connect("files"), Name: "files", Version: "1.0.0", RouterKeys: e.Keys(), Origin: executortest.Origin, Now: time.Now, Ready: ready,
		}, handlers)
	}()
	select {
	case <-ready:
	case err := <-ended:
		t.Fatal(err)
	}
	router := connect(natsserver.Router)
	ask := func(subject string, d intents.Dispatch) (r intents.Report, err error) {
		raw, err := json.Marshal(d)
		if err != nil {
			return r, err
		}
		answer, err := router.Request(t.Context(), subject, raw)
		if err != nil {
			return r, err
		}
		return r, json.Unmarshal(answer, &r)
	}
	if r, err := ask(bus.Exec("read_lines"), e.Sign(t, e.Fill(readIntent()))); err != nil || r.Status != intents.Done {
		t.Errorf("%+v, %v", r, err)
	}
	// A ticket for one type is not good on another's subject.
	if r, err := ask(bus.Exec("skill.call"), e.Sign(t, e.Fill(readIntent()))); err != nil || r.Code != intents.SignatureInvalid {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := ask(bus.Exec("write_temp"), intents.Dispatch{}); !errors.Is(err, bus.ErrNoResponders) {
		t.Errorf("a type that nobody carries out: %v", err)
	}
	var info micro.Info
	answer, err := router.Request(t.Context(), "$SRV.INFO.writ-files", nil)
	if err := errors.Join(err, json.Unmarshal(answer, &info)); err != nil || !slices.ContainsFunc(info.Endpoints, func(e micro.EndpointInfo) bool {
		return e.Subject == bus.Exec("read_lines")
	}) {
		t.Errorf("%+v, %v", info, err)
	}

	last := make(chan error, 1)
	slow := e.Sign(t, e.Fill(executortest.Intent{Type: "skill.call", Args: map[string]any{"skill": "x"}}))
	go func() {
		r, err := ask(bus.Exec("skill.call"), slow)
		if err == nil && r.Status != intents.Done {
			err = errors.New(r.Reason)
		}
		last <- err
	}()
	<-begun
	stop()
	select {
	case err := <-ended:
		t.Errorf("Serve returned before its intent had ended: %v", err)
	default:
	}
	close(goOn)
	if err := <-last; err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
