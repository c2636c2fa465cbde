package bus_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"

	"aob.dev/writ/bus"
	"aob.dev/writ/bus/natsserver"
)

// The requester chooses the reply subject, and the answer goes there. Each role makes all
// requests that it may make and names every subject as the reply subject. An answer arrives only
// where the requester may publish by itself.
func TestReplySubjectsLeadNowhere(t *testing.T) {
	s := start(t)
	var mu sync.Mutex
	heard := map[string][]string{} // subject to messages that arrived there
	hear := func(subject, what string) {
		mu.Lock()
		defer mu.Unlock()
		heard[subject] = append(heard[subject], what)
	}
	listen := func(cred natsserver.Credentials, subject, group string) *nats.Conn {
		nc := raw(t, s, cred)
		answer := func(m *nats.Msg) {
			hear(subject, string(m.Data))
			if m.Reply != "" && !strings.HasPrefix(string(m.Data), "answer ") {
				_ = m.Respond([]byte("answer " + string(m.Data))) // to the reply subject that the requester named
			}
		}
		if _, err := nc.QueueSubscribe(subject, group, answer); err != nil {
			t.Fatal(err)
		}
		if err := nc.FlushTimeout(patience); err != nil {
			t.Fatal(err)
		}
		return nc
	}
	var listeners []*nats.Conn
	for _, subject := range []string{bus.Intents, bus.Batches, bus.DirectoryAPIKey, bus.DirectoryUser, bus.DirectoryRegistry, bus.PlansSilent} {
		listeners = append(listeners, listen(admitted(t, s, "router").Serves, subject, "router"))
	}
	targets := []string{bus.Intents, bus.Batches, bus.DirectoryAPIKey, bus.DirectoryUser, bus.DirectoryRegistry, bus.PlansSilent, bus.Turn("acme", "t1")}
	for _, role := range []string{"manager", "planner", "task", "workflow"} {
		p := admitted(t, s, role)
		for _, subject := range []string{bus.Agent(role), bus.AgentInstance(role, p.Instance), bus.Grant(role, p.Instance)} {
			listeners = append(listeners, listen(p.Serves, subject, role))
			targets = append(targets, subject)
		}
	}
	listeners = append(listeners, listen(admitted(t, s, "python").Serves, bus.Exec("exec_python"), "python"))
	reader := bus.FramesAPI + "CONSUMER.CREATE." + bus.FramesStream + ".c." + bus.Turn("acme", "t1")
	targets = append(targets, bus.Exec("exec_python"), "_INBOX_gateway.x", "$SRV.INFO", reader, bus.FramesAPI+"CONSUMER.MSG.NEXT."+bus.FramesStream+".c")

	for _, role := range []string{"gateway", "manager", "planner", "task", "workflow", "frames"} {
		nc := raw(t, s, admitted(t, s, role).Asks)
		var mayPublish []string
		for _, target := range targets {
			if refused(t, nc, func() error { return nc.Publish(target, []byte("probe")) }) == nil {
				mayPublish = append(mayPublish, target)
			}
		}
		for _, to := range mayPublish {
			for _, reply := range targets {
				if err := nc.PublishRequest(to, reply, []byte(role+" asks "+to+" for "+reply)); err != nil {
					t.Fatal(err)
				}
			}
		}
		flush(t, append(listeners, nc))
		mu.Lock()
		for subject, all := range heard {
			for _, what := range all {
				answered := strings.HasPrefix(what, "answer "+role+" ") || strings.Contains(what, "io.nats.jetstream") // JetStream's own
				if answered && !slices.Contains(mayPublish, subject) {
					t.Errorf("%s: %q arrived on %s", role, what, subject)
				}
			}
		}
		mu.Unlock()
	}
	if frames := framesOf(t, s, "task", "planner"); len(frames) > 0 {
		t.Errorf("frames by way of a reply subject: %q", frames)
	}
}

// flush waits until all sent messages have arrived, and their answers too.
func flush(t *testing.T, conns []*nats.Conn) {
	t.Helper()
	for range 3 {
		for _, nc := range conns {
			if err := nc.FlushTimeout(patience); err != nil {
				t.Fatal(err)
			}
			handed := make(chan struct{})
			if err := nc.Barrier(func() { close(handed) }); err != nil {
				t.Fatal(err)
			}
			<-handed
		}
	}
}

// framesOf returns the frames of the turn that the given roles caused.
func framesOf(t *testing.T, s *natsserver.Server, roles ...string) []string {
	t.Helper()
	if err := connect(t, s, "manager").Publish(bus.Turn("acme", "t1"), []byte("last")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var out []string
	err := connect(t, s, natsserver.Frames).Frames(ctx, bus.Turn("acme", "t1"), 0, func(f bus.Frame) bool {
		for _, role := range roles {
			if strings.HasPrefix(string(f.Data), "answer "+role+" ") {
				out = append(out, string(f.Data))
			}
		}
		return string(f.Data) != "last"
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A server answers only the requests it received, on the subject that the NATS server chose; a
// service cannot choose it, whoever the requester is.
func TestServersPublishOnlyAnswers(t *testing.T) {
	s := start(t)
	p := admitted(t, s, "task")
	task, manager := raw(t, s, p.Serves), raw(t, s, admitted(t, s, "manager").Asks)
	said := make(chan error, 2)
	if _, err := task.QueueSubscribe(bus.Agent("task"), "task", func(m *nats.Msg) {
		if !strings.HasPrefix(m.Reply, "_R_.") {
			t.Errorf("the reply subject %q is the asker's own", m.Reply)
		}
		said <- refused(t, task, func() error { return task.Publish(bus.DirectoryUser, nil) })
	}); err != nil {
		t.Fatal(err)
	}
	if err := task.FlushTimeout(patience); err != nil {
		t.Fatal(err)
	}
	if err := manager.PublishRequest(bus.Agent("task"), bus.DirectoryUser, nil); err != nil {
		t.Fatal(err)
	}
	if err := <-said; err == nil {
		t.Error("a task asks the directory, because a manager named it for the answer")
	}
}
