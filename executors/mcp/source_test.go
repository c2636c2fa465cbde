package mcp

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Error(d)
		}
		if got.Endpoint() != tt.endpoint {
			t.Errorf("endpoint %s, want %s", got.Endpoint(), tt.endpoint)
		}
	}
}

func TestParseSourceRefuses(t *testing.T) {
	for in, want := range map[string]string{
		"":                          "neither a URL nor a command",
		`""`:                        "neither a URL nor a command",
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
