package bus_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"aob.dev/writ/bus"
	"aob.dev/writ/bus/natsserver"
	"aob.dev/writ/internal/testing/natstest"
)

// TestEveryPairOnCluster tries every subject as every role against a nats-server whose only
// knowledge of writ is the generated file.
func TestEveryPairOnCluster(t *testing.T) {
	seeds := map[string]string{} // by public key
	key := func() string {
		seed, public, err := bus.NewNKey()
		if err != nil {
			t.Fatal(err)
		}
		seeds[public] = seed
		return public
	}
	var members []natsserver.Member
	for role := range allowed {
		for _, instance := range []string{"one", "two"} {
			if role == externalName {
				continue
			}
			if role == "hearer" {
				instance = "acme_" + instance
			}
			m := natsserver.Member{Role: role, Instance: instance}
			asks, serves, err := natsserver.Connections(role, executors)
			if err != nil {
				t.Fatal(err)
			}
			if asks {
				m.Asks = key()
			}
			if serves {
				m.Serves = key()
			}
			members = append(members, m)
		}
	}
	url := cluster(t, members)
	for _, m := range members {
		before, one := strings.CutSuffix(m.Instance, "one")
		if !one {
			continue
		}
		is := allowed[m.Role]
		tried := slices.Concat(subjects, ofProcess(m.Role, m.Instance), ofProcess(m.Role, before+"two"))
		for public, may := range map[string]may{m.Asks: is.asks, m.Serves: is.serves} {
			if public == "" {
				continue
			}
			may.publish, may.subscribe = mine(may.publish, m.Instance), mine(may.subscribe, m.Instance)
			t.Run(fmt.Sprintf("%s %t", m.Role, public == m.Asks), func(t *testing.T) {
				everySubject(t, knock(t, url, byKey(t, seeds[public])), tried, may)
			})
		}
	}
	of := func(role string) natsserver.Member {
		return members[slices.IndexFunc(members, func(m natsserver.Member) bool { return m.Role == role && m.Instance == "one" })]
	}
	router, gateway, task := of("router"), of("gateway"), of("task")
	core := knock(t, url, byKey(t, seeds[router.Serves]), nats.CustomInboxPrefix(bus.InboxPrefix("router_one")))
	if _, err := core.QueueSubscribe("writ.directory.user", "one", func(m *nats.Msg) { _ = m.Respond([]byte("answered")) }); err != nil {
		t.Fatal(err)
	}
	if err := core.FlushTimeout(patience); err != nil {
		t.Fatal(err)
	}
	asking := knock(t, url, byKey(t, seeds[gateway.Asks]), nats.CustomInboxPrefix(bus.InboxPrefix("gateway_one")))
	if m, err := asking.Request("writ.directory.user", nil, patience); err != nil || string(m.Data) != "answered" {
		t.Errorf("the gateway asks the router: %v", err)
	}
	other := knock(t, url, byKey(t, seeds[task.Asks]), nats.CustomInboxPrefix(bus.InboxPrefix("task_one")))
	if err := refused(t, other, func() error { return other.Publish("writ.directory.user", nil) }); err == nil {
		t.Error("a task asks the directory")
	}
	stranger, _, err := bus.NewNKey()
	if err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]nats.Option{"nobody": nats.Name("x"), "a stranger": byKey(t, stranger), "a password": nats.UserInfo("router_one", "x")} {
		if nc, err := nats.Connect(url, o, nats.NoReconnect()); err == nil {
			nc.Close()
			t.Errorf("%s is let in", name)
		}
	}
}

// TestClusterWithoutKeys: no process is admitted without keys of its own.
func TestClusterWithoutKeys(t *testing.T) {
	for _, m := range []natsserver.Member{{Role: "manager", Instance: "x"}, {Role: "manager", Instance: "x", Asks: "U", Serves: "U"}, {Role: "nobody", Instance: "x"}} {
		if text, err := natsserver.Cluster(executors, []natsserver.Member{m}); err == nil {
			t.Errorf("%+v: %s", m, text)
		}
	}
	if _, _, err := natsserver.Connections("nobody", executors); err == nil {
		t.Error("a role that nobody knows has connections")
	}
}

// cluster starts a nats-server with a configuration file that includes the one of writ.
func cluster(t *testing.T, members []natsserver.Member) (url string) {
	t.Helper()
	text, err := natsserver.Cluster(executors, members)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "writ.conf"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "nats.conf")
	rest := fmt.Sprintf("listen: 127.0.0.1:-1\njetstream { store_dir: %q }\ninclude ./writ.conf\n", filepath.Join(dir, "js"))
	if err := os.WriteFile(file, []byte(rest), 0o600); err != nil {
		t.Fatal(err)
	}
	s := natstest.Standalone(t, file)
	if got := s.SystemAccount(); got == nil || got.Name != "SYS" {
		t.Errorf("system account: %v", got)
	}
	return s.ClientURL()
}

func knock(t *testing.T, url string, opts ...nats.Option) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect(url, append(opts, nats.NoReconnect(), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}
