// Acme carries out x.acme.echo: a service outside of writ's repository.
package main

import (
	"context"
	"encoding/json"
	"log"
	"net/http"
	"os"
	"sync"
	"time"

	"aob.dev/writ/executors"
	"aob.dev/writ/intents"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
)

const executor, typ = "x-acme", "x.acme.echo"

// echo carries out one intent. It was verified before.
func echo(_ context.Context, o *executors.Intent) (*executors.Result, error) {
	var args struct{ Text string }
	if err := o.Decode(&args); err != nil {
		return nil, err
	}
	if effect := os.Getenv("ACME_DIES"); effect != "" { // in the middle: the effect is there, and nobody is told
		must(os.WriteFile(effect, []byte(o.ID), 0o600))
		os.Exit(0)
	}
	return &executors.Result{Value: map[string]string{"text": args.Text}}, nil
}

// routerKeys asks the router which keys are in force, every ten seconds.
type routerKeys struct {
	mu    sync.Mutex
	set   intents.JWKS
	byKID map[string]intents.Key
	at    time.Time
}

func (k *routerKeys) Key(kid string) (intents.Key, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if time.Since(k.at) > 10*time.Second {
		k.refresh() // without an answer the old keys go on
	}
	key, ok := k.byKID[kid]
	switch {
	case !ok:
		return key, intents.Refuse(intents.KeyUnknown, "", "no such key")
	case key.Revoked:
		return key, intents.Refuse(intents.KeyRevoked, "", "key is revoked")
	}
	return key, nil
}

func (k *routerKeys) refresh() {
	resp, err := http.Get(os.Getenv("WRIT_URL") + "/.well-known/jwks.json")
	if err != nil {
		return
	}
	defer resp.Body.Close()
	var set intents.JWKS
	if json.NewDecoder(resp.Body).Decode(&set) != nil {
		return
	}
	if keys, err := set.Admit(); err == nil {
		k.set, k.byKID, k.at = set, keys, time.Now()
	}
}

func main() {
	keys := &routerKeys{}
	keys.refresh()
	service, err := executors.New(executors.Config{
		Name: executor, Version: "1.0.0", RouterKeys: keys, Origin: keys.set.Origin, Now: time.Now,
	}, map[string]executors.Handler{typ: echo})
	must(err)
	seed, err := nats.NkeyOptionFromSeed(os.Getenv("WRIT_NATS_SEED_FILE"))
	must(err)
	nc, err := nats.Connect(os.Getenv("WRIT_NATS_URL"), seed, nats.CustomInboxPrefix("_INBOX_"+executor), nats.MaxReconnects(-1))
	must(err)
	m, err := micro.AddService(nc, micro.Config{Name: "writ-" + executor, Version: "1.0.0", QueueGroup: executor})
	must(err)
	must(m.AddEndpoint("echo", micro.HandlerFunc(func(r micro.Request) {
		go func() { _ = r.Respond(answer(service, r.Data())) }()
	}), micro.WithEndpointSubject("writ.exec."+typ)))
	select {}
}

// answer is what makes this an executor: nothing is believed before Handle has
// verified it. ACME_LAX shows what happens without.
func answer(s *executors.Service, dispatch []byte) []byte {
	if os.Getenv("ACME_LAX") != "" {
		return []byte(`{"status":"done","code":"OK","result":{"text":""}}`)
	}
	return s.Handle(context.Background(), typ, dispatch)
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
