package egress

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// leastTricks guards against a table that silently became short.
const leastTricks = 60

// tricks are URLs of strangers, each with what must be said of it.
var tricks = []struct{ url, is string }{
	{"http://127.0.0.1/", "this machine"},
	{"http://127.0.0.1:80/", "this machine"},
	{"http://127.1.2.3/", "this machine"},
	{"http://127.255.255.254:8080/mcp", "this machine"},
	{"http://127.0.0.1./", "this machine"},
	{"http://[::1]/", "this machine"},
	{"http://[0:0:0:0:0:0:0:1]/", "this machine"},
	{"http://[::ffff:127.0.0.1]/", "this machine"},
	{"http://[::ffff:7f00:1]/", "this machine"},
	{"http://[64:ff9b::127.0.0.1]/", "this machine"},
	{"http://localhost/", "a name of a private network"},
	{"http://LOCALHOST:9200/", "a name of a private network"},
	{"http://localhost./", "a name of a private network"},
	{"http://a.localhost/", "a name of a private network"},
	{"http://localhost.localdomain/", "a name of a private network"},
	{"http://ip6-localhost/", "a name of a private network"},
	{"http://loca\u200dlhost/", "neither a name nor an address"},
	{"http://ｌｏｃａｌｈｏｓｔ/", "a name of a private network"},
	{"http://2130706433/", "neither a name nor an address"},
	{"http://017700000001/", "neither a name nor an address"},
	{"http://0x7f000001/", "neither a name nor an address"},
	{"http://0x7f.0x0.0x0.0x1/", "neither a name nor an address"},
	{"http://0177.0.0.1/", "neither a name nor an address"},
	{"http://127.1/", "neither a name nor an address"},
	{"http://127.0.1/", "neither a name nor an address"},
	{"http://127.0.0.01/", "neither a name nor an address"},
	{"http://127.0.0.0x1/", "neither a name nor an address"},
	{"http://127.0.0.1../", "neither a name nor an address"},
	{"http://127。0。0。1/", "this machine"},
	{"http://１２７.０.０.１/", "this machine"},
	{"http://①②⑦.0.0.①/", "this machine"},
	{"http://10.0.0.1/", "a private network"},
	{"http://10.255.255.255/", "a private network"},
	{"http://172.16.0.1/", "a private network"},
	{"http://172.31.255.255/", "a private network"},
	{"http://192.168.1.1/", "a private network"},
	{"http://[::ffff:10.0.0.1]/", "a private network"},
	{"http://[64:ff9b::c0a8:101]/", "a private network"},
	{"http://[fd12:3456::1]/", "a private network"},
	{"http://[fc00::1]/", "a private network"},
	{"http://100.64.0.1/", "the network of a provider"},
	{"http://198.18.0.1/", "a network for benchmarks"},
	{"http://169.254.169.254/latest/meta-data/", "a metadata service"},
	{"http://[::ffff:169.254.169.254]/", "a metadata service"},
	{"http://[::ffff:a9fe:a9fe]/", "a metadata service"},
	{"http://[64:ff9b::a9fe:a9fe]/", "a metadata service"},
	{"http://2852039166/", "neither a name nor an address"},
	{"http://169.254.170.2/v2/credentials", "a metadata service"},
	{"http://100.100.100.200/", "a metadata service"},
	{"http://168.63.129.16/", "a metadata service"},
	{"http://[fd00:ec2::254]/", "a metadata service"},
	{"http://[fd20:ce::254]/", "a metadata service"},
	{"http://metadata.google.internal/computeMetadata/v1/", "a name of a private network"},
	{"http://metadata/", "a name of a private network"},
	{"http://kubernetes.default.svc.cluster.local/", "a name of a private network"},
	{"http://printer.home.arpa/", "a name of a private network"},
	{"http://169.254.0.1/", "a link-local address"},
	{"http://[fe80::1]/", "a link-local address"},
	{"http://[fe80::1%25lo]/", "a link-local address"},
	{"http://[::ffff:169.254.0.1]/", "a link-local address"},
	{"http://0.0.0.0/", "no address"},
	{"http://0.1.2.3/", "no address"},
	{"http://0/", "neither a name nor an address"},
	{"http://[::]/", "no address"},
	{"http://[::ffff:0.0.0.0]/", "no address"},
	{"http://224.0.0.1/", "a multicast address"},
	{"http://[ff02::1]/", "a multicast address"},
	{"http://255.255.255.255/", "a reserved address"},
	{"http://240.0.0.1/", "a reserved address"},
	{"http://[2002:7f00:1::1]/", "a translation of another address"},
	{"http://[2002:a9fe:a9fe::1]/", "a translation of another address"},
	{"http://192.88.99.1/", "a translation of another address"},
	{"http://[2001:0:4136:e378:8000:63bf:3fff:fdd2]/", "reserved for protocols"},
	{"http://192.0.0.192/", "reserved for protocols"},
	{"http://[64:ff9b:1::7f00:1]/", "a reserved address"},
	{"http://[::127.0.0.1]/", "a reserved address"},
	{"http://[::ffff:0:127.0.0.1]/", "a reserved address"},
	{"http://[fec0::1]/", "a reserved address"},
	{"http://[100::1]/", "a reserved address"},
	{"http://[5f00::1]/", "a reserved address"},
	{"http://192.0.2.1/", "an example"},
	{"http://[2001:db8::1]/", "an example"},
	{"http://a.example@127.0.0.1/", "credentials"},
	{"http://127.0.0.1@a.example/", "credentials"},
	{"http://127.0.0.1:80@a.example/", "credentials"},
	{"file:///etc/passwd", "no http(s)"},
	{"gopher://127.0.0.1:6379/_x", "no http(s)"},
	{"http:///x", "no http(s)"},
	{"//a.example/", "no http(s)"},
	{"http://a.example:80:80/", "no http(s)"},
	{"http://127.0.0.1%2f@a.example/", "no http(s)"},
}

// strict is a door for strangers behind which nobody is dialled.
func strict(t *testing.T, named ...string) *door {
	t.Helper()
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"} {
		t.Setenv(name, "")
	}
	return newDoor(named)
}

// TestTricks: no way of writing an address gets through, neither when a URL is checked nor
// when it is dialled, and each has its own answer.
func TestTricks(t *testing.T) {
	if len(tricks) < leastTricks {
		t.Fatalf("%d tricks", len(tricks))
	}
	d := strict(t)
	client := Client(d.transport())
	client.Timeout = time.Minute
	for _, tt := range tricks {
		var refused *RefusedError
		if err := Check(tt.url); !errors.As(err, &refused) || !strings.Contains(err.Error(), tt.is) {
			t.Errorf("%s is checked: %v, want %q", tt.url, err, tt.is)
		}
		if tt.is == "no http(s)" || tt.is == "credentials" {
			continue // no request can be made of it, or net/http takes what is behind the @
		}
		resp, err := client.Get(tt.url)
		if err == nil {
			resp.Body.Close()
		}
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), tt.is) || !strings.Contains(err.Error(), "the operator lists "+refused.Place+" in agent_hosts") {
			t.Errorf("%s is dialled: %v, want %q and what to do", tt.url, err, tt.is)
		}
	}
}

// TestPublic: what everybody may reach is not refused.
func TestPublic(t *testing.T) {
	for _, text := range []string{
		"https://agents.example.com/mcp", "http://8.8.8.8:8080/", "https://[2606:4700::1111]/", "http://[64:ff9b::808:808]/", "http://172.32.0.1/",
		"http://100.128.0.1/", "http://11.0.0.1/", "https://xn--bcher-kva.example/", "https://bücher.example/", "http://169.253.0.1/", "https://local.example/", "https://a.b.example./",
	} {
		if err := Check(text); err != nil {
			t.Error(err)
		}
	}
	for _, text := range []string{"8.8.8.8:443", "[2606:4700::1111]:443", "[64:ff9b::808:808]:443", "[::ffff:8.8.8.8]:80"} {
		if err := strict(t).judge(place{"agents.example.com", "443"}, text); err != nil {
			t.Error(err)
		}
	}
}

// TestNamed: the operator may name a place in a private network, by any way of writing it,
// and that opens no other one.
func TestNamed(t *testing.T) {
	ends := placesOf(t, "http://crm.corp.example:8081/mcp", "10.0.0.5:9000", "tools", "http://169.254.1.2/x", "http://[fe80::1%25lo]:80")
	d := &door{named: ends}
	for _, tt := range []struct {
		host, port, addr, is string
	}{
		{"crm.corp.example", "8081", "10.1.2.3:8081", ""},
		{"CRM.corp.example.", "8081", "127.0.0.1:8081", ""},
		{"crm.corp.example", "8081", "[fd12::1]:8081", ""},
		{"crm.corp.example", "8082", "10.1.2.3:8082", "a private network"},
		{"www.corp.example", "8081", "10.1.2.3:8081", "a private network"},
		{"crm.corp.example", "8081", "169.254.169.254:8081", "a metadata service"},
		{"crm.corp.example", "8081", "[fe80::1%lo]:8081", "a link-local address"},
		{"crm.corp.example", "8081", "0.0.0.0:8081", "no address"},
		{"crm.corp.example", "8081", "[::ffff:169.254.169.254]:8081", "a metadata service"},
		{"crm.corp.example", "8081", "8.8.8.8:8081", ""},
		{"10.0.0.5", "9000", "10.0.0.5:9000", ""},
		{"::ffff:10.0.0.5", "9000", "10.0.0.5:9000", ""},
		{"10.0.0.5", "9001", "10.0.0.5:9001", "a private network"},
		{"10.0.0.6", "9000", "10.0.0.6:9000", "a private network"},
		{"tools", "1", "172.17.0.2:1", ""},
		{"tools", "2", "172.17.0.2:2", ""},
		{"169.254.1.2", "80", "169.254.1.2:80", ""},
		{"169.254.169.254", "80", "169.254.169.254:80", "a metadata service"},
		{"fe80::1%lo", "80", "[fe80::1%lo]:80", ""},
	} {
		p, err := newPlace(tt.host, tt.port)
		if err != nil {
			t.Fatal(err)
		}
		err = d.judge(p, tt.addr)
		if (err == nil) != (tt.is == "") || err != nil && !strings.Contains(err.Error(), tt.is) {
			t.Errorf("%s leads to %s: %v, want %q", p, tt.addr, err, tt.is)
		}
	}
	if err := Check("http://localhost:8081/mcp", "localhost:8081"); err != nil {
		t.Error(err)
	}
	if err := Check("http://localhost:8082/mcp", "localhost:8081"); err == nil {
		t.Error("another port of a place is named, too")
	}
}

func placesOf(t *testing.T, texts ...string) []place {
	t.Helper()
	out := places(texts)
	if len(out) != len(texts) {
		t.Fatalf("%d of %d places", len(out), len(texts))
	}
	return out
}

// rebinding is a resolver that leads a name to another address at each question.
func rebinding(t *testing.T, addrs ...string) *net.Resolver {
	t.Helper()
	conn, err := new(net.ListenConfig).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	var asked atomic.Int64
	go func() { // until the test ends
		buf := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buf[:n]) != nil {
				continue
			}
			m.Response = true
			m.Additionals = nil
			q := m.Questions[0]
			if q.Type == dnsmessage.TypeA {
				i := min(int(asked.Add(1)), len(addrs)) - 1
				a := netip.MustParseAddr(addrs[i]).As4()
				m.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class}, Body: &dnsmessage.AResource{A: a}}}
			}
			if raw, err := m.Pack(); err == nil {
				_, _ = conn.WriteTo(raw, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

// TestRebinding: a name that leads to a public address at first and to this machine
// afterwards is judged where it is dialled, each time.
func TestRebinding(t *testing.T) {
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a stranger's name led to this machine") }))
	defer inside.Close()
	at, err := url.Parse(inside.URL)
	if err != nil {
		t.Fatal(err)
	}
	to := "http://rebind.example:" + at.Port()
	d := strict(t)
	d.resolver = rebinding(t, "127.0.0.1", "169.254.169.254", "10.0.0.1")
	client := Client(d.transport())
	for _, is := range []string{"leads to 127.0.0.1, which is this machine", "leads to 169.254.169.254, which is a metadata service", "leads to 10.0.0.1, which is a private network"} {
		if err := Check(to); err != nil {
			t.Errorf("the name alone is refused: %v", err)
		}
		resp, err := client.Get(to)
		if err == nil {
			resp.Body.Close()
		}
		if err == nil || !strings.Contains(err.Error(), is) {
			t.Errorf("got %v, want %q", err, is)
		}
	}
}

// TestRedirects: none is followed, so no credentials get anywhere else.
func TestRedirects(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") }))
	defer other.Close()
	for _, to := range []string{other.URL, "http://169.254.169.254/latest/meta-data/", "//127.0.0.1/", "/elsewhere"} {
		for _, status := range []int{301, 302, 303, 307, 308} {
			asked := 0
			site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				asked++
				w.Header().Set("Location", to)
				w.WriteHeader(status)
			}))
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, site.URL, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer secret")
			resp, err := Client(strict(t, site.URL, other.URL).transport()).Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != status || asked != 1 {
				t.Errorf("%d to %s: answered %d after %d requests", status, to, resp.StatusCode, asked)
			}
			site.Close()
		}
	}
}

// TestProxy: a proxy of the environment gets what goes to public names, NO_PROXY counts,
// and what a stranger names is judged before the proxy is asked.
func TestProxy(t *testing.T) {
	var through []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		through = append(through, r.Host)
		w.WriteHeader(http.StatusNoContent)
	}))
	defer proxy.Close()
	strict(t)
	t.Setenv("HTTP_PROXY", proxy.URL)
	t.Setenv("NO_PROXY", "direct.example")
	d := newDoor([]string{"http://intern:8081"})
	d.resolver = rebinding(t, "127.0.0.1")
	client := Client(d.transport())
	for to, is := range map[string]string{
		"http://agents.example/mcp":   "",
		"http://intern:8081/":         "",
		"http://intern:8082/":         "a name of a private network",
		"http://10.0.0.1/":            "a private network",
		"http://169.254.169.254/":     "a metadata service",
		"http://metadata.internal/":   "a name of a private network",
		"http://0x7f.1/":              "neither a name nor an address",
		"http://direct.example/":      "this machine",
		proxy.URL:                     "the proxy",
		"http://metadata./computeX":   "a name of a private network",
		"http://[::ffff:10.0.0.1]:1/": "a private network",
	} {
		resp, err := client.Get(to)
		if err == nil {
			resp.Body.Close()
		}
		var refused *RefusedError
		if (err == nil) != (is == "") || err != nil && (!errors.As(err, &refused) || !strings.Contains(err.Error(), is)) {
			t.Errorf("%s: %v, want %q", to, err, is)
		}
	}
	if len(through) != 2 {
		t.Errorf("the proxy got %v", through)
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name, value string
		want        time.Duration
	}{
		{"Retry-After", "7", 7 * time.Second},
		{"Retry-After", "-7", 0},
		{"Retry-After", "soon", 0},
		{"Retry-After", "99999999999", (1 << 30) * time.Second},
		{"Retry-After", now.Add(time.Minute).Format(http.TimeFormat), time.Minute},
		{"Retry-After", now.Add(-time.Minute).Format(http.TimeFormat), 0},
		{"Retry-After-Ms", "250", 250 * time.Millisecond},
	} {
		got := RetryAfter(http.Header{tt.name: {tt.value}}, now)
		if got != tt.want {
			t.Errorf("%s: %s gives %s, want %s", tt.name, tt.value, got, tt.want)
		}
	}
}
