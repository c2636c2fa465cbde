package bus_test

import (
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/nats-io/nats.go"

	"aob.dev/writ/bus"
	"aob.dev/writ/bus/natsserver"
	"aob.dev/writ/internal/testing/natstest"
)

// may lists what a connection may publish and subscribe to, of all subjects below; everything
// else is tried and must be refused. {me} is its process. A subscription with a group after a
// blank is allowed only to members of the group.
type may struct{ publish, subscribe []string }

// allowed is the complete table of rights by role: of the connection with which a process
// requests, and of the one with which it serves.
var allowed = map[string]struct{ asks, serves may }{
	"gateway": {asks: may{
		publish: []string{
			"writ.intents", "writ.batches", "writ.directory.apikey", "writ.directory.user", "writ.directory.registry", "writ.plans.silent",
			"writ.agent.manager", "writ.grant.manager.p1", "writ.driving.manager", "writ.agent.workflow", "writ.grant.workflow.p1", "writ.driving.workflow", "writ.turn.acme.t1", "writ.logs.p1", "writ.produce.manager", "writ.prompts", "writ.callerkeys",
		},
		subscribe: []string{"_INBOX_gateway_{me}.x"},
	}},
	"manager": {
		asks: may{
			publish: []string{
				"writ.intents", "writ.batches", "writ.turn.acme.t1",
				"writ.agent.planner", "writ.agent.planner.p1", "writ.agent.task", "writ.agent.task.p1", "writ.grant.planner.p1", "writ.grant.task.p1", "writ.produce.planner",
			},
			subscribe: []string{"_INBOX_manager_{me}.x"},
		},
		serves: may{subscribe: []string{"writ.agent.manager manager", "writ.agent.manager.{me} manager", "writ.grant.manager.{me} manager", "writ.driving.manager {me}", "writ.produce.manager manager", "writ.prompts manager", "$SRV.PING", "$SRV.INFO.writ-manager"}},
	},
	"workflow": {
		asks: may{
			publish:   []string{"writ.intents", "writ.batches", "writ.turn.acme.t1", "writ.agent.task", "writ.agent.task.p1", "writ.grant.task.p1"},
			subscribe: []string{"_INBOX_workflow_{me}.x"},
		},
		serves: may{subscribe: []string{"writ.agent.workflow workflow", "writ.agent.workflow.{me} workflow", "writ.grant.workflow.{me} workflow", "writ.driving.workflow {me}", "$SRV.PING", "$SRV.INFO.writ-workflow"}},
	},
	"planner": {
		asks:   may{publish: []string{"writ.intents", "writ.batches"}, subscribe: []string{"_INBOX_planner_{me}.x"}},
		serves: may{subscribe: []string{"writ.agent.planner planner", "writ.agent.planner.{me} planner", "writ.grant.planner.{me} planner", "writ.produce.planner planner", "$SRV.PING", "$SRV.INFO.writ-planner"}},
	},
	"task": {
		asks:   may{publish: []string{"writ.intents", "writ.batches"}, subscribe: []string{"_INBOX_task_{me}.x"}},
		serves: may{subscribe: []string{"writ.agent.task task", "writ.agent.task.{me} task", "writ.grant.task.{me} task", "$SRV.PING", "$SRV.INFO.writ-task"}},
	},
	"python": {serves: may{
		publish:   []string{"writ.log.python"},
		subscribe: []string{"writ.exec.exec_python python", "writ.reports.python {me}", "$SRV.PING", "$SRV.INFO.writ-python"},
	}},
	"memory": {serves: may{
		publish:   []string{"writ.log.memory"},
		subscribe: []string{"writ.exec.write_memory memory", "writ.exec.memory.query memory", "writ.reports.memory {me}", "$SRV.PING", "$SRV.INFO.writ-memory"},
	}},
	"logs": {serves: may{
		publish:   []string{"writ.log.logs"},
		subscribe: []string{"writ.exec.logs.stream logs", "writ.reports.logs {me}", "writ.log.*", "writ.log.>", "writ.log.python", "writ.log.memory", "writ.log.logs", "writ.log.skills", "writ.log.x-acme", "writ.logs.{me} logs", "$SRV.PING", "$SRV.INFO.writ-logs"},
	}},
	"skills": {serves: may{
		publish:   []string{"writ.log.skills"},
		subscribe: []string{"writ.exec.skill.call skills", "writ.exec.skills skills", "writ.exec.answers skills", "writ.callerkeys {me}", "writ.reports.skills {me}", "$SRV.PING"},
	}},
	externalName: {serves: may{
		publish:   []string{"writ.log.x-acme"},
		subscribe: []string{"writ.exec.x.acme.echo x-acme", "writ.reports.x-acme x-acme", "writ.reports.x-acme q", "$SRV.PING", "$SRV.INFO.writ-x-acme", "_INBOX_x-acme.x"},
	}},
	"router": {serves: may{
		publish: []string{
			"writ.exec.exec_python", "writ.exec.write_memory", "writ.exec.memory.query", "writ.exec.logs.stream", "writ.exec.skill.call", "writ.exec.skills", "writ.exec.answers", "writ.exec.admin", "writ.exec.x.acme.echo", "writ.exec.x.other.echo", "writ.reports.python", "writ.reports.memory", "writ.reports.logs", "writ.reports.skills", "writ.reports.x-acme",
			"$SRV.INFO.writ-x-acme", "$SRV.PING", "$SRV.INFO.writ-manager", "$SRV.INFO.writ-planner", "$SRV.INFO.writ-task", "$SRV.INFO.writ-workflow", "$SRV.INFO.writ-python", "$SRV.INFO.writ-memory", "$SRV.INFO.writ-logs", "$SRV.INFO.writ-router", "$SRV.>",
			"writ.driving.manager", "writ.driving.workflow", "writ.frames.STREAM.CREATE.FRAMES", "writ.frames.STREAM.INFO.FRAMES", "writ.frames.STREAM.PURGE.FRAMES",
			"writ.frames.CONSUMER.CREATE.FRAMES.c.writ.turn.acme.t1", "writ.frames.CONSUMER.MSG.NEXT.FRAMES.c", "writ.frames.CONSUMER.DELETE.FRAMES.c", "$JS.API.INFO", "$JS.API.STREAM.CREATE.JOURNAL", "$JS.API.STREAM.PURGE.FRAMES", "$JS.API.STREAM.MSG.GET.FRAMES", "$JS.API.DIRECT.GET.FRAMES",
			"$JS.API.CONSUMER.CREATE.FRAMES.c.writ.turn.acme.t1", "$JS.API.CONSUMER.CREATE.FRAMES.c", "$JS.API.CONSUMER.CREATE.FRAMES",
			"$JS.API.CONSUMER.MSG.NEXT.FRAMES.c", "$JS.API.CONSUMER.DELETE.FRAMES.c",
			"$JS.API.CONSUMER.CREATE.JOURNAL.c.writ.turn.acme.t1", "$JS.API.CONSUMER.MSG.NEXT.JOURNAL.c", "$JS.ACK.FRAMES.c.1.1.1.1.1",
			"$JS.API.STREAM.INFO.KEYS", "$JS.API.STREAM.MSG.GET.KEYS", "$JS.API.CONSUMER.CREATE.KEYS.c.keys.1", "$JS.API.STREAM.INFO.JOURNAL", "$JS.API.STREAM.INFO.KV_writ", "$JS.API.STREAM.MSG.GET.JOURNAL", "$JS.API.STREAM.DELETE.JOURNAL", "$JS.API.STREAM.PURGE.JOURNAL",
			"$JS.API.STREAM.MSG.DELETE.JOURNAL", "$JS.API.DIRECT.GET.JOURNAL", "$JS.API.DIRECT.GET.KV_writ.$KV.writ.recorder", "$KV.writ.recorder", "journal.group", "keys.7", "writ.intents", "writ.batches", "writ.turn.acme.t1",
		},
		subscribe: []string{
			"writ.intents {me}", "writ.batches {me}", "writ.directory.apikey {me}", "writ.directory.user {me}", "writ.directory.registry {me}", "writ.plans.silent {me}",
			"$SRV.INFO.writ-x-acme", "$SRV.PING", "$SRV.INFO.writ-manager", "$SRV.INFO.writ-planner", "$SRV.INFO.writ-task", "$SRV.INFO.writ-workflow", "$SRV.INFO.writ-python", "$SRV.INFO.writ-memory", "$SRV.INFO.writ-logs", "$SRV.INFO.writ-router", "$SRV.>",
			"_INBOX_router_{me}.x",
		},
	}},
	"teller": {asks: may{
		publish: []string{
			"writ.events.acme.step", "writ.events.other.step", "writ.jetstream.STREAM.CREATE.EVENTS", "writ.jetstream.STREAM.INFO.EVENTS", "writ.jetstream.STREAM.MSG.GET.EVENTS", "writ.jetstream.STREAM.PURGE.EVENTS",
			"writ.jetstream.CONSUMER.CREATE.EVENTS.c.writ.events.acme.step", "writ.jetstream.CONSUMER.MSG.NEXT.EVENTS.c", "writ.jetstream.CONSUMER.DELETE.EVENTS.c",
		},
		subscribe: []string{"_INBOX_teller_{me}.x"},
	}},
	"hearer": {asks: may{publish: heardBy, subscribe: []string{"_INBOX_hearer_{me}.x"}}},
	"recorder": {serves: may{
		publish: []string{
			"$JS.API.STREAM.INFO.KEYS", "$JS.API.STREAM.MSG.GET.KEYS", "$JS.API.CONSUMER.CREATE.KEYS.c.keys.1", "$JS.API.STREAM.INFO.JOURNAL", "$JS.API.STREAM.INFO.KV_writ", "$JS.API.STREAM.MSG.GET.JOURNAL", "$JS.API.DIRECT.GET.JOURNAL", "$JS.API.DIRECT.GET.KV_writ.$KV.writ.recorder",
			"$JS.API.CONSUMER.CREATE.JOURNAL.c.writ.turn.acme.t1", "$JS.API.CONSUMER.MSG.NEXT.JOURNAL.c", "$KV.writ.recorder",
		},
		subscribe: []string{"_INBOX_recorder_{me}.x"},
	}},
	"frames": {asks: may{
		publish: []string{
			"writ.frames.CONSUMER.CREATE.FRAMES.c.writ.turn.acme.t1",
			"writ.frames.CONSUMER.MSG.NEXT.FRAMES.c", "writ.frames.CONSUMER.DELETE.FRAMES.c",
		},
		subscribe: []string{"_INBOX_frames_{me}.x"},
	}},
}

// heardBy is what a reader of events of tenant acme may publish.
var heardBy = []string{
	"writ.jetstream.CONSUMER.CREATE.EVENTS.{me}.writ.events.acme.step", "writ.jetstream.CONSUMER.INFO.EVENTS.{me}", "writ.jetstream.CONSUMER.MSG.NEXT.EVENTS.{me}",
	"writ.jetstream.CONSUMER.DELETE.EVENTS.{me}", "$JS.ACK.EVENTS.{me}.1.1.1.1.1",
}

// subjects are all subjects of the grammar, one of each kind, and those that an intruder would
// try besides.
var subjects = []string{
	"writ.intents", "writ.batches", "writ.directory.apikey", "writ.directory.user", "writ.directory.registry", "writ.directory.*", "writ.plans.silent", "writ.callerkeys",
	"writ.exec.exec_python", "writ.exec.write_memory", "writ.exec.memory.query", "writ.exec.skill.call", "writ.exec.skills", "writ.exec.answers", "writ.exec.admin", "writ.exec.x.acme.echo", "writ.exec.x.other.echo", "writ.exec.>", "writ.reports.python", "writ.reports.memory", "writ.reports.logs", "writ.reports.skills", "writ.reports.x-acme", "writ.reports.>",
	"writ.exec.logs.stream", "writ.log.python", "writ.log.memory", "writ.log.logs", "writ.log.skills", "writ.log.x-acme", "writ.log.*", "writ.log.>", "writ.logs.p1", "writ.logs.*", "writ.produce.manager", "writ.produce.planner", "writ.produce.*",
	"writ.agent.manager", "writ.agent.planner", "writ.agent.task", "writ.agent.workflow", "writ.agent.*", "writ.agent.task.*",
	"writ.agent.manager.p1", "writ.agent.planner.p1", "writ.agent.task.p1", "writ.agent.workflow.p1",
	"writ.events.acme.step", "writ.events.other.step", "writ.events.acme.>", "writ.events.>", "writ.jetstream.STREAM.CREATE.EVENTS", "writ.jetstream.STREAM.INFO.EVENTS", "writ.jetstream.STREAM.MSG.GET.EVENTS",
	"writ.jetstream.STREAM.PURGE.EVENTS", "writ.jetstream.STREAM.DELETE.EVENTS", "writ.jetstream.STREAM.UPDATE.EVENTS", "writ.jetstream.STREAM.CREATE.JOURNAL", "writ.jetstream.INFO",
	"writ.jetstream.CONSUMER.CREATE.EVENTS.c.writ.events.acme.step", "writ.jetstream.CONSUMER.MSG.NEXT.EVENTS.c", "writ.jetstream.CONSUMER.DELETE.EVENTS.c", "writ.jetstream.CONSUMER.CREATE.EVENTS.c", "writ.jetstream.CONSUMER.INFO.EVENTS.c",
	"writ.turn.acme.t1", "writ.turn.>", "writ.grant.manager.p1", "writ.grant.planner.p1", "writ.grant.task.p1", "writ.grant.workflow.p1", "writ.grant.manager.*", "writ.grant.>", "writ.grant.acme.t1", "writ.driving.manager", "writ.prompts", "writ.driving.workflow", "writ.driving.*",
	"$SRV.INFO.writ-x-acme", "$SRV.PING", "$SRV.INFO.writ-manager", "$SRV.INFO.writ-planner", "$SRV.INFO.writ-task", "$SRV.INFO.writ-workflow", "$SRV.INFO.writ-python", "$SRV.INFO.writ-memory", "$SRV.INFO.writ-logs", "$SRV.INFO.writ-router", "$SRV.>",
	"$JS.API.INFO", "$JS.API.STREAM.CREATE.JOURNAL", "$JS.API.STREAM.PURGE.FRAMES", "$JS.API.STREAM.MSG.GET.FRAMES", "$JS.API.DIRECT.GET.FRAMES",
	"$JS.API.CONSUMER.CREATE.FRAMES.c.writ.turn.acme.t1", "$JS.API.CONSUMER.CREATE.FRAMES.c", "$JS.API.CONSUMER.CREATE.FRAMES",
	"$JS.API.CONSUMER.MSG.NEXT.FRAMES.c", "$JS.API.CONSUMER.DELETE.FRAMES.c",
	"$JS.API.CONSUMER.CREATE.JOURNAL.c.writ.turn.acme.t1", "$JS.API.CONSUMER.MSG.NEXT.JOURNAL.c", "$JS.ACK.FRAMES.c.1.1.1.1.1",
	"$JS.API.STREAM.INFO.KEYS", "$JS.API.STREAM.MSG.GET.KEYS", "$JS.API.CONSUMER.CREATE.KEYS.c.keys.1", "$JS.API.STREAM.INFO.JOURNAL", "$JS.API.STREAM.INFO.KV_writ", "$JS.API.STREAM.MSG.GET.JOURNAL", "$JS.API.STREAM.DELETE.JOURNAL", "$JS.API.STREAM.PURGE.JOURNAL",
	"$JS.API.STREAM.MSG.DELETE.JOURNAL", "$JS.API.DIRECT.GET.JOURNAL", "$JS.API.DIRECT.GET.KV_writ.$KV.writ.recorder", "$KV.writ.recorder", "journal.group", "keys.7",
	"writ.frames.CONSUMER.CREATE.FRAMES.c.writ.turn.acme.t1", "writ.frames.CONSUMER.CREATE.FRAMES.c", "writ.frames.CONSUMER.CREATE.JOURNAL.c.writ.turn.acme.t1",
	"writ.frames.CONSUMER.MSG.NEXT.FRAMES.c", "writ.frames.CONSUMER.MSG.NEXT.JOURNAL.c", "writ.frames.CONSUMER.DELETE.FRAMES.c", "writ.frames.STREAM.INFO.FRAMES", "writ.frames.STREAM.PURGE.FRAMES", "writ.frames.STREAM.CREATE.FRAMES",
	"_INBOX_gateway.x", "_INBOX_manager.x", "_INBOX_planner.x", "_INBOX_task.x", "_INBOX_workflow.x", "_INBOX_python.x", "_INBOX_memory.x", "_INBOX_router.x", "_INBOX_frames.x", "_INBOX_x-acme.x", "_INBOX_teller.x",
	"_INBOX_manager.>", "_R_.x", "_INBOX.>", "$SYS.REQ.SERVER.PING", "$SYS.>", "writ.>", "elsewhere", ">",
}

// ofProcess returns the subjects of one process of a role.
func ofProcess(role, instance string) []string {
	if role == "logs" {
		return []string{"_INBOX_logs_" + instance + ".x", "writ.logs." + instance}
	}
	if role == "hearer" {
		return append(mine(heardBy, instance), "_INBOX_hearer_"+instance+".x", "writ.jetstream.CONSUMER.CREATE.EVENTS."+instance+".writ.events.other.step", "writ.jetstream.CONSUMER.CREATE.EVENTS."+instance)
	}
	return []string{
		"_INBOX_" + role + "_" + instance + ".x", "_INBOX_" + role + "_" + instance + ".>",
		"writ.agent." + role + "." + instance, "writ.grant." + role + "." + instance,
	}
}

func isWildcard(subject string) bool { return strings.ContainsAny(subject, "*>") }

// TestEveryPair tries every subject as every role, on each connection of a process and with the
// subjects of another process of the same role: in process, and over a listener, where external
// executors connect too.
func TestEveryPair(t *testing.T) {
	s := startOn(t, "127.0.0.1:0")
	for role, is := range allowed {
		if role == externalName {
			seed := admit(t, s, "x.acme.echo")
			t.Run(role, func(t *testing.T) { everySubject(t, outside(t, s, seed), subjects, is.serves) })
			continue
		}
		if role == "hearer" {
			me, other := "acme_one", "acme_two"
			tried := slices.Concat(subjects, ofProcess(role, me), ofProcess(role, other), ofProcess(role, "other_one"))
			m := may{mine(is.asks.publish, me), mine(is.asks.subscribe, me)}
			t.Run(role, func(t *testing.T) { everySubject(t, hearers(t, s, me)[me], tried, m) })
			continue
		}
		me, other := admitted(t, s, role), admitted(t, s, role)
		tried := slices.Concat(subjects, ofProcess(role, me.Instance), ofProcess(role, other.Instance))
		for name, c := range map[string]struct {
			cred natsserver.Credentials
			may  may
		}{"asks": {me.Asks, is.asks}, "serves": {me.Serves, is.serves}} {
			if c.cred == (natsserver.Credentials{}) || role != "router" && me.Asks == me.Serves && name == "asks" {
				continue // it has none, or the same for both
			}
			if role == "router" && name == "asks" {
				c.may = is.serves // one connection for both
			}
			m := may{mine(c.may.publish, me.Instance), mine(c.may.subscribe, me.Instance)}
			t.Run(role+" "+name, func(t *testing.T) { everySubject(t, raw(t, s, c.cred), tried, m) })
			t.Run(role+" "+name+" over the listener", func(t *testing.T) {
				everySubject(t, dial(t, s, nats.UserInfo(c.cred.User, c.cred.Password)), tried, m)
			})
		}
	}
	if _, err := s.Admit("nobody"); err == nil {
		t.Error("a role that nobody knows is let in")
	}
}

func mine(subjects []string, instance string) []string {
	var out []string
	for _, s := range subjects {
		out = append(out, strings.ReplaceAll(s, "{me}", instance))
	}
	return out
}

func admitted(t *testing.T, s *natsserver.Server, role string) natsserver.Process {
	t.Helper()
	p, err := s.Admit(role)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// everySubject publishes and subscribes to all of them: without a group, in each existing queue
// group, and in an unknown one.
func everySubject(t *testing.T, nc *nats.Conn, tried []string, m may) {
	t.Helper()
	groups := []string{"", "q"}
	for _, allowed := range slices.Concat(m.publish, m.subscribe) {
		subject, group, _ := strings.Cut(allowed, " ")
		if !slices.Contains(tried, subject) {
			t.Fatalf("%s is not among the subjects tried", subject)
		}
		if group != "" && !slices.Contains(groups, group) {
			groups = append(groups, group)
		}
	}
	for _, subject := range tried {
		if !isWildcard(subject) {
			err := refused(t, nc, func() error { return nc.Publish(subject, nil) })
			check(t, "publish", subject, err, slices.Contains(m.publish, subject))
		}
		for _, group := range groups {
			err := refused(t, nc, func() error {
				if group == "" {
					_, err := nc.SubscribeSync(subject)
					return err
				}
				_, err := nc.QueueSubscribeSync(subject, group)
				return err
			})
			// The whole inbox of a process is its own; one subject of it is tested here.
			whole := strings.HasSuffix(subject, ".>") && slices.Contains(m.subscribe, strings.TrimSuffix(subject, ">")+"x")
			want := whole || slices.Contains(m.subscribe, subject) || slices.Contains(m.subscribe, subject+" "+group)
			check(t, "subscribe "+group, subject, err, want)
		}
	}
}

func check(t *testing.T, verb, subject string, err error, want bool) {
	t.Helper()
	if want && err != nil {
		t.Errorf("%s %s: refused, should be allowed: %v", verb, subject, err)
	}
	if !want && !errors.Is(err, nats.ErrPermissionViolation) {
		t.Errorf("%s %s: allowed, should be refused (%v)", verb, subject, err)
	}
}

// refused runs do and returns the server's objection, if any.
func refused(t *testing.T, nc *nats.Conn, do func() error) error {
	t.Helper()
	before := nc.LastError()
	if err := do(); err != nil {
		t.Fatal(err)
	}
	if err := nc.FlushTimeout(patience); err != nil {
		t.Fatal(err)
	}
	if after := nc.LastError(); after != before { //nolint:errorlint // identity: a new one
		return after
	}
	return nil
}

// raw is a connection with plain nats.go.
func raw(t *testing.T, s *natsserver.Server, cred natsserver.Credentials) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect("", nats.InProcessServer(s), nats.UserInfo(cred.User, cred.Password),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})) // LastError tells
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// With a listener there is a socket, and nobody connects to it without a password.
func TestListenerNeedsPassword(t *testing.T) {
	s := startOn(t, "127.0.0.1:0")
	good := admitted(t, s, "router").Asks
	other := admitted(t, s, "router").Asks
	for _, cred := range []natsserver.Credentials{{}, {User: good.User}, {User: good.User, Password: other.Password}, {User: "nobody", Password: good.Password}, {User: "router", Password: good.Password}} {
		err := natstest.Answer(func() error {
			c, err := bus.Connect(t.Context(), bus.Options{URL: s.URL(), User: cred.User, Password: cred.Password})
			if c != nil {
				c.Close()
			}
			return err
		})
		if !errors.Is(err, nats.ErrAuthorization) {
			t.Errorf("%+v: %v, want an authorization error", cred, err)
		}
	}
	c, err := bus.Connect(t.Context(), bus.Options{URL: s.URL(), User: good.User, Password: good.Password})
	if err != nil {
		t.Fatal(err)
	}
	c.Close()

	_, err = natsserver.Start(t.Context(), natsserver.Options{Dir: t.TempDir(), Listen: strings.TrimPrefix(s.URL(), "nats://")})
	if !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("port in use: %v", err)
	}
	if url := start(t).URL(); url != "" {
		t.Errorf("listens on %s without having been asked", url)
	}
}

// An executor answers its request once and can publish nothing else.
func TestExecutorAnswersOnce(t *testing.T) {
	s := start(t)
	exec, router := raw(t, s, admitted(t, s, "python").Serves), connect(t, s, natsserver.Router)
	second := make(chan error, 1)
	_, err := exec.QueueSubscribe("writ.exec.exec_python", "python", func(m *nats.Msg) {
		if err := m.Respond([]byte("one")); err != nil {
			t.Error(err)
		}
		second <- refused(t, exec, func() error { return m.Respond([]byte("two")) })
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := exec.FlushTimeout(patience); err != nil {
		t.Fatal(err)
	}
	if got, err := request(t, router, "writ.exec.exec_python", "x"); got != "one" || err != nil {
		t.Fatalf("got %q, %v", got, err)
	}
	if err := <-second; !errors.Is(err, nats.ErrPermissionViolation) {
		t.Errorf("second answer: %v, want a permission violation", err)
	}
}
