package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/keydir"
)

// busWorld is a writ with a NATS listener, and the type x.acme.echo of somebody else.
type busWorld struct {
	*machine
	address string
	ana     person // who may use the type
}

const echoType = "x.acme.echo"

func newBusWorld(t *testing.T) *busWorld {
	t.Helper()
	address := freeAddress(t)
	w := &busWorld{machine: boot(t, newPuppet(), serveDepot(t, nil).skills, "--nats", address, "--catalog", "../../cmd/writ/testdata/acme/catalog"), address: address}
	w.writ("tenant", "role", "put", "acme", "--capability", "x.acme:echo", "--url", w.url, "--data", w.dir)
	w.ana = w.addPerson("default", "ana", "user", "acme")
	return w
}

// issued gives the seed of a new executor or reader of events.
func (w *busWorld) issued(args ...string) (seed string) {
	w.t.Helper()
	seed = filepath.Join(w.t.TempDir(), "seed")
	w.writ(append(args, "--out", seed, "--data", w.dir)...)
	return seed
}

// joined connects with a seed as soon as that is let in.
func (w *busWorld) joined(seed, inbox string) *nats.Conn {
	w.t.Helper()
	key, err := nats.NkeyOptionFromSeed(seed)
	if err != nil {
		w.t.Fatal(err)
	}
	var nc *nats.Conn
	w.await("the seed is let in", func() bool {
		nc, err = nats.Connect("nats://"+w.address, key, nats.NoReconnect(), nats.CustomInboxPrefix(inbox), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
		return err == nil
	})
	w.t.Cleanup(nc.Close)
	return nc
}

// echoed submits an intent of the type and returns the answer.
func (w *busWorld) echoed() intents.Answer {
	w.t.Helper()
	_, a, p := w.sign(w.ana, echoType, map[string]string{"text": catalog.RandomKey()})
	if p.Code != "" {
		a.Code = p.Code
	}
	return a
}

const (
	echoQueue = "x-acme"
	echoGood  = `{"status":"done","code":"OK","result":{"text":"hello"}}`
)

// falseReports of an executor are no success; nor do they become another's words.
var falseReports = map[string]string{
	"nothing": "", "null": "null", "empty": "{}", "list": "[]", "number": "7", "text": `"done"`, "no JSON": "done", "half": `{"status":"done","code":"OK","result":{"te`, "two documents": echoGood + echoGood, "no UTF-8": "{\"status\":\"done\",\"code\":\"OK\",\"result\":{\"text\":\"\xff\"}}",
	"a status twice": `{"status":"failed","status":"done","code":"OK","result":{"text":"x"}}`, "a status twice, in capitals": `{"Status":"done","status":"failed","code":"EXECUTOR_FAILED","result":{"text":"x"}}`, "twice in other capitals": `{"Status":"failed","STATUS":"done","code":"OK","result":{"text":"x"}}`, "twice, with a long s": `{"status":"failed","\u017ftatus":"done","code":"OK","result":{"text":"x"}}`, "a code twice, in capitals": `{"status":"done","Code":"EXECUTOR_FAILED","CODE":"OK","result":{"text":"x"}}`,
	"a result twice": `{"status":"done","code":"OK","result":{"text":"a"},"result":{"text":"b"}}`, "a member of the result twice": `{"status":"done","code":"OK","result":{"text":"a","text":"b"}}`, "a member twice, escaped": `{"status":"done","code":"OK","result":{"text":"a","te\u0078t":"b"}}`,
	"no status": `{"code":"OK","result":{"text":"x"}}`, "status null": `{"status":null,"code":"OK","result":{"text":"x"}}`, "status accepted": `{"status":"accepted","code":"OK","result":{"text":"x"}}`, "status in capitals": `{"status":"DONE","code":"OK","result":{"text":"x"}}`, "status held": `{"status":"held","code":"APPROVAL_REQUIRED","result":{"text":"x"}}`, "a list of statuses": `{"status":["done"],"code":"OK","result":{"text":"x"}}`,
	"no result": `{"status":"done","code":"OK"}`, "result null": `{"status":"done","code":"OK","result":null}`, "another result": `{"status":"done","code":"OK","result":{"words":"x"}}`, "more than the result": `{"status":"done","code":"OK","result":{"text":"x","more":1}}`, "result as text": `{"status":"done","code":"OK","result":"{\"text\":\"x\"}"}`, "a lone surrogate": `{"status":"done","code":"OK","result":{"text":"\ud800"}}`,
	"failed as OK": `{"status":"failed","code":"OK"}`, "failed in flight": `{"status":"failed","code":"IN_FLIGHT"}`, "failed and waits": `{"status":"failed","code":"APPROVAL_REQUIRED"}`, "failed without a code": `{"status":"failed"}`, "an unknown code": `{"status":"failed","code":"ALL_IS_WELL"}`,
	"deep": `{"status":"done","code":"OK","result":` + strings.Repeat(`{"text":`, 20_000) + `1` + strings.Repeat(`}`, 20_000) + `}`, "large": `{"status":"done","code":"OK","result":{"text":7,"x":"` + strings.Repeat("x", 900_000) + `"}}`,
}

// TestRedTeamExecutor: an executor of somebody else reports its own success and failure, in one
// form, once, for what it was given; and what it was given opens nothing.
func TestRedTeamExecutor(t *testing.T) {
	t.Parallel()
	w := newBusWorld(t)
	nc := w.joined(w.issued("admin", "executor", "issue", echoQueue, "--catalog", "../../cmd/writ/testdata/acme/catalog"), "_INBOX_x-acme")
	var report atomic.Pointer[func(*nats.Msg)]
	var last atomic.Pointer[nats.Msg]
	answer := func(text string) { f := func(m *nats.Msg) { _ = m.Respond([]byte(text)) }; report.Store(&f) }
	if _, err := nc.QueueSubscribe("writ.exec."+echoType, echoQueue, func(m *nats.Msg) { last.Store(m); (*report.Load())(m) }); err != nil {
		t.Fatal(err)
	}
	if err := nc.FlushTimeout(patience); err != nil {
		t.Fatal(err)
	}
	answer(echoGood)
	if a := w.echoed(); a.Code != intents.OK || !strings.Contains(marshalled(a), "hello") {
		t.Fatalf("a sound report is not taken, the attempts show nothing: %+v", a)
	}
	for name, text := range falseReports {
		attack(t, attempt{"a report: " + name, func() string {
			answer(text)
			if a := w.echoed(); a.Code == intents.OK || a.Code.Info().Code == "" {
				return marshalled(a)
			}
			return ""
		}})
	}
	stolen := last.Load()
	w.lines(answer)
	w.replies(nc, &report, stolen)
	var sent struct{ Payload, Ticket string }
	var raw map[string]any
	if err := json.Unmarshal(stolen.Data, &raw); err != nil {
		t.Fatal(err)
	}
	sent.Ticket, sent.Payload = fmt.Sprint(raw["ticket"]), marshalled(raw["payload"])
	var signed struct {
		Actor struct{ Grant string }
	}
	_ = json.Unmarshal([]byte(sent.Payload), &signed)
	for name, bearer := range map[string]string{"its ticket": sent.Ticket, "the grant that it was sent": signed.Actor.Grant} {
		if bearer == "" {
			continue // it was not sent at all
		}
		for _, path := range []string{"/v1/intents", "/v1/me", "/v1/approvals", "/agent/plans", "/console-api/bundle", "/v1/policy", "/skills/"} {
			attack(t, attempt{name + ": GET " + path, func() string {
				if w.reads(path, "Authorization", "Bearer "+bearer) || w.reads(path, "X-Api-Key", bearer) {
					return "it reads"
				}
				return ""
			}})
		}
	}
	for name, body := range map[string]any{
		"as it came": raw, "without a signature": map[string]any{"header": raw["header"], "payload": raw["payload"], "signature": ""}, "with the ticket's": map[string]any{"protected": raw["header"], "payload": raw["payload"], "signature": sent.Ticket[strings.LastIndex(sent.Ticket, ".")+1:]},
	} {
		attack(t, attempt{"the dispatch as an intent, " + name, func() string {
			if code := w.submitted([]byte(marshalled(body))); code == intents.OK {
				return "it is carried out"
			}
			return ""
		}})
	}
	answer(echoGood)
	w.stolenKey()
	w.writ("admin", "executor", "revoke", echoQueue, "--data", w.dir)
	w.await("it is disconnected", nc.IsClosed)
	attack(t, attempt{"a revoked executor", func() string {
		if a := w.echoed(); a.Code == intents.OK {
			return marshalled(a)
		}
		return ""
	}})
}

// stolenKey of a role signs what the role may until it is revoked.
func (w *busWorld) stolenKey() {
	w.t.Helper()
	keys, err := keydir.Load(filepath.Join(w.dir, "keys"))
	if err != nil {
		w.t.Fatal(err)
	}
	g := w.granted(w.ana)
	intent := func(role intents.Role) intents.Code {
		signed, _, err := intents.Sign(keys[role], intents.Body{
			Version: intents.Version, Intent: intents.Spec{Type: echoType, Args: json.RawMessage(`{"text":"hello"}`)}, Actor: intents.Actor{UserID: g.User, Tenant: g.Tenant, Grant: g.Grant}, Context: &intents.Context{TurnID: g.Turn},
			Constraints: intents.Constraints{IssuedAt: intents.FormatTime(time.Now()), TTLSec: 60, Audience: g.Origin, IdempotencyKey: catalog.RandomKey()},
		})
		if err != nil {
			w.t.Fatal(err)
		}
		return w.submitted(signed)
	}
	if code := intent(intents.RoleGateway); code != intents.OK {
		w.t.Fatalf("the key of the gateway does not sign, the attempts show nothing: %s", code)
	}
	w.writ("admin", "keys", "rotate", "gateway", "--url", w.url, "--data", w.dir)
	w.writ("admin", "keys", "revoke", "--url", w.url, "--data", w.dir, "--", keys[intents.RoleGateway].KID)
	for _, role := range []intents.Role{intents.RoleGateway, intents.RolePlanner, intents.RoleRouter, intents.RoleLedger} {
		attack(w.t, attempt{"the key of " + string(role) + ", revoked or of another role", func() string {
			if code := intent(role); code == intents.OK {
				return "it signs"
			}
			return ""
		}})
	}
}

// lines and report of an executor are its own, whatever their content.
func (w *busWorld) lines(answer func(string)) {
	w.t.Helper()
	for _, source := range []string{"writ", "python:stderr", "x-other:a", "", " writ", "writ\u200b", "WRIT"} {
		mark := catalog.RandomKey()
		answer(`{"status":"done","code":"OK","result":{"text":"` + mark + `"},"lines":[{"ts":"2026-01-01T00:00:00Z","level":"error","source":` + marshalled(source) + `,"text":"` + mark + ` says"}],"facts":[
			{"event":"intent.denied","payload":{"a":"` + mark + `"}},{"event":"x.other.said","payload":{"a":"` + mark + `"}},{"event":"approval.released","payload":{"a":"` + mark + `"}},{"event":"x.acme.ok","payload":{"a":"1","a":"` + mark + `"}}]}`)
		if a := w.echoed(); a.Code != intents.OK {
			w.t.Fatalf("lines make a report false: %+v", a)
		}
		record := string(w.writ("audit", "export", "--data", w.dir))
		plain := strings.ReplaceAll(record, `\"`, `"`)
		at := strings.Index(plain, mark+" says")
		if at < 0 {
			w.t.Fatal("no line is recorded: the attempts show nothing")
		}
		attack(
			w.t,
			attempt{"a line from " + source, func() string {
				if before := plain[max(0, at-200):at]; !strings.Contains(before, `"source":"x-acme:`) {
					return "it is taken as it is: " + before
				}
				return ""
			}},
			attempt{"facts of others, from " + source, func() string {
				for _, e := range []string{"intent.denied", "x.other.said", "approval.released", "x.acme.ok"} {
					if strings.Contains(plain, `"event":"`+e+`","payload":{"a":"`+mark) {
						return e + " is recorded"
					}
				}
				return ""
			}},
		)
	}
}

// replies come once, to the request that they answer.
func (w *busWorld) replies(nc *nats.Conn, report *atomic.Pointer[func(*nats.Msg)], stolen *nats.Msg) {
	w.t.Helper()
	says := func(name, want string, f func(*nats.Msg)) attempt {
		return attempt{name, func() string {
			report.Store(&f)
			a := w.echoed()
			if got := marshalled(a); !strings.Contains(got, want) || strings.Contains(got, "evil") {
				return got
			}
			return ""
		}}
	}
	good, evil := []byte(echoGood), []byte(strings.ReplaceAll(echoGood, "hello", "evil"))
	attack(
		w.t,
		says("a second reply", "hello", func(m *nats.Msg) { _, _ = m.Respond(good), m.Respond(evil) }),
		says("a failure, then a success", string(intents.ExecutorFailed), func(m *nats.Msg) {
			_, _ = m.Respond([]byte(`{"status":"failed","code":"EXECUTOR_FAILED"}`)), m.Respond(evil)
		}),
		says("nothing, then a success", string(intents.ExecutorFailed), func(m *nats.Msg) { _, _ = m.Respond(nil), m.Respond(evil) }),
		says("a reply to the request before", "hello", func(m *nats.Msg) { _, _ = stolen.Respond(evil), m.Respond(good) }),
		says("a part, then the answer", "hello", func(m *nats.Msg) {
			_ = m.RespondMsg(&nats.Msg{Data: good, Header: nats.Header{"Writ-More": {"1"}}})
			_ = m.Respond(evil)
		}),
		says("an error's header", "OK", func(m *nats.Msg) {
			_ = m.RespondMsg(&nats.Msg{Data: good, Header: nats.Header{"Nats-Service-Error-Code": {"500"}, "Nats-Service-Error": {"evil"}}})
		}),
		says("to the inboxes of the router", "hello", func(m *nats.Msg) {
			for _, to := range []string{"_INBOX_router.x", "_INBOX_router_one.x", "_INBOX.x", "_INBOX_gateway.x", m.Reply + ".x"} {
				_ = nc.Publish(to, evil)
			}
			_ = m.Respond(good)
		}),
	)
}

// subjectsOfOthers are none of a reader of events of tenant default, nor of an executor.
var subjectsOfOthers = []string{
	"writ.intents", "writ.batches", "writ.directory.apikey", "writ.directory.user", "writ.directory.registry", "writ.plans.silent", "writ.exec.exec_python", "writ.exec.skill.call", "writ.exec.x.other.echo", "writ.log.python",
	"writ.log.x-other", "writ.produce.manager", "writ.prompts", "writ.agent.manager", "writ.agent.task.p1", "writ.turn.default.t1", "writ.grant.task.p1", "writ.driving.manager", "writ.events.default.step", "writ.events.other.step", "writ.jetstream.CONSUMER.CREATE.EVENTS.default_crm.writ.events.other.step",
	"writ.jetstream.CONSUMER.CREATE.EVENTS.default_crm", "writ.jetstream.CONSUMER.MSG.NEXT.EVENTS.other_crm", "writ.jetstream.STREAM.PURGE.EVENTS", "writ.jetstream.STREAM.MSG.GET.EVENTS", "writ.frames.CONSUMER.CREATE.FRAMES.c.writ.turn.default.t1", "$JS.API.STREAM.DELETE.JOURNAL", "$JS.API.STREAM.MSG.GET.JOURNAL", "$JS.API.INFO",
	"$KV.writ.recorder", "journal.group", "keys.7", "writ.alive.one", "_INBOX_gateway.x", "_INBOX_router_one.x", "$SYS.REQ.SERVER.PING", "$SRV.INFO.writ-router",
}

// TestRedTeamBus: with the stolen key of a reader of events, or of an executor, nobody asks,
// answers or hears anything else over the bus, and without one nobody comes in.
func TestRedTeamBus(t *testing.T) {
	t.Parallel()
	w := newBusWorld(t)
	for name, url := range map[string]string{"no key": "nats://" + w.address, "a name": "nats://gateway@" + w.address, "a name and a password": "nats://router:router@" + w.address, "the name of the system": "nats://sys:sys@" + w.address, "a token": "nats://token@" + w.address} {
		attack(t, attempt{"a connection with " + name, func() string {
			nc, err := nats.Connect(url)
			if err == nil {
				nc.Close()
				return "it is let in"
			}
			return ""
		}})
	}
	executor := w.joined(w.issued("admin", "executor", "issue", echoQueue, "--catalog", "../../cmd/writ/testdata/acme/catalog"), "_INBOX_x-acme")
	for name, nc := range map[string]*nats.Conn{"reader": w.joined(w.issued("admin", "events", "issue", "crm", "--tenant", "default"), "_INBOX_hearer_default_crm"), "executor": executor} {
		w.subjects(name, nc)
	}
	// What is its own, it may hear; but not beside its queue, where it would see what others carry out.
	if what := allowed(executor, func() error {
		_, err := executor.QueueSubscribeSync("writ.exec."+echoType, echoQueue)
		return err
	}); what == "" {
		t.Error("an executor may not serve its own type: the attempts show nothing")
	}
	for _, group := range []string{"", "router", "x-other"} {
		attack(t, attempt{"the own type beside the queue " + group, func() string {
			return allowed(executor, func() error {
				_, err := executor.QueueSubscribeSync("writ.exec."+echoType, group)
				return err
			})
		}})
	}
	if status, p := w.call(person{}, http.MethodGet, "/readyz", nil, nil); status != http.StatusOK {
		t.Errorf("after it: HTTP %d %+v", status, p)
	}
}

// allowed reports whether the server lets a connection do something.
func allowed(nc *nats.Conn, do func() error) string {
	before := nc.LastError()
	err := do()
	if err == nil {
		err = nc.FlushTimeout(patience)
	}
	if err != nil || !errors.Is(nc.LastError(), before) {
		return ""
	}
	return "it is allowed"
}

func (w *busWorld) subjects(name string, nc *nats.Conn) {
	w.t.Helper()
	for _, subject := range subjectsOfOthers {
		attack(
			w.t,
			attempt{name + ": publish " + subject, func() string {
				return allowed(nc, func() error { return nc.Publish(subject, []byte("{}")) })
			}},
			attempt{name + ": hear " + subject, func() string {
				return allowed(nc, func() error { _, err := nc.SubscribeSync(subject); return err })
			}},
			attempt{name + ": answer " + subject, func() string {
				return allowed(nc, func() error { _, err := nc.QueueSubscribeSync(subject, "router"); return err })
			}},
		)
	}
	for _, subject := range []string{">", "*", "writ.>", "writ.exec.>", "writ.exec.*", "writ.events.>", "writ.*.>", "_INBOX.>", "_R_.>", "$SYS.>", "$SRV.>", "$JS.>"} {
		attack(w.t, attempt{name + ": hear " + subject, func() string {
			return allowed(nc, func() error { _, err := nc.SubscribeSync(subject); return err })
		}})
	}
}
