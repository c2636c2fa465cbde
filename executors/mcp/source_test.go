package mcp

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/executors/sandbox"
)

func TestParseSource(t *testing.T) {
	tests := []struct {
		in       string
		want     Source
		endpoint string
	}{
		{"https://skills.example/mcp", Source{URL: "https://skills.example/mcp"}, "https://skills.example/mcp"},
		{" http://127.0.0.1:8080/mcp?token=x ", Source{URL: "http://127.0.0.1:8080/mcp?token=x"}, "http://127.0.0.1:8080/mcp"},
		{"npx -y some-server arg", Source{Command: []string{"npx", "-y", "some-server", "arg"}}, "stdio:npx"},
		{`/usr/bin/server  "two words" 'a "b" \' c\ d ""`, Source{Command: []string{"/usr/bin/server", "two words", `a "b" \`, "c d", ""}}, "stdio:server"},
		{`server --url http://x/y $HOME;rm`, Source{Command: []string{"server", "--url", "http://x/y", "$HOME;rm"}}, "stdio:server"},
	}
	for _, tt := range tests {
		got, err := ParseSource(tt.in)
		if err != nil {
			t.Errorf("%s: %v", tt.in, err)
		}
		if d := cmp.Diff(tt.want, got, cmp.AllowUnexported(Source{})); d != "" {
			t.Error(d)
		}
		if got.Endpoint() != tt.endpoint {
			t.Errorf("endpoint %s, want %s", got.Endpoint(), tt.endpoint)
		}
	}
}

func TestParseSourceRefuses(t *testing.T) {
	for in, want := range map[string]string{
		"":                          "neither url nor command",
		`""`:                        "names no program",
		"ftp://skills.example/mcp":  "only http and https",
		"https:///mcp":              "no host",
		"https://me:hunter2@x/mcp":  "no credentials",
		"https://me:hunter2@x:y/":   "not a URL",
		"https://skills.example/#a": "no fragment",
		`server "open`:              "not closed",
		`server \`:                  "not closed",
		"server\nrm":                "one line",
	} {
		_, err := ParseSource(in)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", in, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the error shows a password: %v", err)
		}
	}
}

func TestParseSettings(t *testing.T) {
	t.Setenv("BANK_TOKEN", "hunter2")
	tests := []struct {
		in   string
		want Source
	}{
		{"name=git -- https://skills.example/mcp", Source{URL: "https://skills.example/mcp", Settings: Settings{Name: "git"}}},
		{
			"name=bank env=BANK_TOKEN env=A=b=c files=/srv/docs files=/srv/repo/../x:rw network=off isolation=none -- server --url http://x -- y",
			Source{Command: []string{"server", "--url", "http://x", "--", "y"}, Settings: Settings{
				Name: "bank", Env: []string{"BANK_TOKEN=hunter2", "A=b=c"}, NoNetwork: true, Plain: true,
				Files: []sandbox.ServerFile{{Path: "/srv/docs"}, {Path: "/srv/x", Write: true}}, Secrets: []string{"hunter2"},
			}},
		},
		{"effect=a:pure effect=b:once -- http://x/", Source{URL: "http://x/", Settings: Settings{Effects: map[string]string{"a": "pure", "b": "once"}}}},
		{"timeout_sec=7 effect=a:b:pure -- http://x/", Source{URL: "http://x/", Settings: Settings{Timeout: 7 * time.Second, Effects: map[string]string{"a:b": "pure"}}}},
		{"timeout=a:b:60 timeout=c:1 -- http://x/", Source{URL: "http://x/", Settings: Settings{Timeouts: map[string]time.Duration{"a:b": time.Minute, "c": time.Second}}}},
		{"trust=true name=crm -- http://x/", Source{URL: "http://x/", Settings: Settings{Name: "crm", Trust: true}}},
		{"tenant=acme rpm=60 tenant=b -- http://x/", Source{URL: "http://x/", Settings: Settings{Tenants: []string{"acme", "b"}, RPM: 60}}},
		{"server name=x -- y", Source{Command: []string{"server", "name=x", "--", "y"}}},
		{"A=b server", Source{Command: []string{"A=b", "server"}}},
	}
	for _, tt := range tests {
		got, err := ParseSource(tt.in)
		if err != nil {
			t.Errorf("%s: %v", tt.in, err)
		}
		if d := cmp.Diff(tt.want, got, cmp.AllowUnexported(Source{})); d != "" {
			t.Error(d)
		}
	}
	for in, want := range map[string]string{
		"name=git server":                        "ends with --",
		"trust=true trust=false -- server":       "trust: stands twice",
		"name= -- server":                        "name: must be one value",
		"name=a/b -- server":                     "1 to 32",
		"env=NO_SUCH_VARIABLE -- server":         "NO_SUCH_VARIABLE is not set",
		"files=docs -- server":                   "absolute",
		"network=maybe -- server":                "network: must be on or off",
		"isolation=some -- server":               "box or none",
		"timeout_sec=86401 -- server":            "from 1 to 86400",
		"timeout=render:86401 -- server":         "timeouts.render: must be a whole number from 1 to 86400",
		"timeout=60 -- server":                   "name a tool",
		"header=Authorization=hunter2 -- server": "configuration file",
		"principal_hmac=hunter2 -- server":       "configuration file",
		"rpm=0 -- server":                        "from 1 to 100000",
		"trust=yes -- server":                    "trust: must be false or true",
		"tenant=a/b -- server":                   "1 to 64 letters",
		"tenant=a tenant=a -- server":            "stands twice",
		"name=a colour=hunter2 -- server":        `no "colour" stands`,
		"isolation=none -- https://x/mcp":        "only a server with command",
		"name=a --":                              "neither",
		"effect=commit -- server":                "effects.: ",
		"effect=commit:never -- server":          "effects.commit: the effect",
		"name=a -- https://me:hunter2@x/mcp":     "no credentials",
		`env=BANK_TOKEN=hunter2 -- server "open`: "not closed",
	} {
		if _, err := ParseSource(in); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: got %v, want %q", in, err, want)
		}
	}
}

// TestParseSourceNamedAsMember: a server, a variable or a tenant may have the name of a member.
func TestParseSourceNamedAsMember(t *testing.T) {
	for _, key := range shortMembers {
		in := "name=web tenant=" + key + " effect=" + key + ":once effect=other:pure env=" + key + "=" + key + " files=/" + key + " files=/b:rw -- server " + key
		if !strings.Contains(key, "_") { // a server's name has no _
			in = strings.Replace(in, "name=web", "name="+key, 1)
		}
		got, err := ParseSource(in)
		want := []sandbox.ServerFile{{Path: "/" + key}, {Path: "/b", Write: true}}
		if err != nil || got.Effects[key] != "once" || got.Effects["other"] != "pure" || !cmp.Equal(got.Files, want) ||
			!cmp.Equal(got.Env, []string{key + "=" + key}) || !cmp.Equal(got.Tenants, []string{key}) || !cmp.Equal(got.Command, []string{"server", key}) {
			t.Errorf("%s: %+v, %v", in, got, err)
		}
	}
}

func FuzzParseSource(f *testing.F) {
	f.Add("name=files files=/a:rw effect=effects:once env=env=A tenant=tenants -- server --flag")
	f.Add("trust=true rpm=3 timeout_sec=5 -- http://a/mcp")
	f.Fuzz(func(t *testing.T, in string) {
		got, err := ParseSource(in)
		if err == nil && (got.URL == "") == (len(got.Command) == 0) {
			t.Errorf("%q is a server with URL %q and command %q", in, got.URL, got.Command)
		}
	})
}

// TestServerIdentity: name and origin tell servers apart; credentials in a query
// do not, as they change.
func TestServerIdentity(t *testing.T) {
	of := func(text string) string {
		s, err := ParseSource(text)
		if err != nil {
			t.Fatal(err)
		}
		return s.Server()
	}
	seen := map[string]string{}
	for _, text := range []string{
		"https://a/mcp", "https://a/other", "https://b/mcp", "http://a/mcp", "name=x -- https://a/mcp",
		"server a b", `server "a b"`, "server", "name=x -- server", "name=y -- server",
	} {
		if other, twice := seen[of(text)]; twice {
			t.Errorf("%s and %s are one server", text, other)
		}
		seen[of(text)] = text
	}
	if of("https://a/mcp?token=1") != of("https://a/mcp?token=2") || of("server a") != of("env=A=1 -- server  a") {
		t.Error("a credential or white space makes another server")
	}
}
