package cli

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aob.dev/writ/internal/datadir"
)

// Which key goes to which writ: a directory's own to itself, to this machine, or
// where its directory is named; nowhere else.
func TestKeyGoesTo(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	files := map[string]string{
		datadir.KeyFile(".writ"): "local\n", datadir.AddressFile(".writ"): "http://127.0.0.1:7777\n", "far.key": "far\n",
	}
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, x := range map[string]struct {
		env              map[string]string
		url, data        string
		wantURL, wantKey string
	}{
		"its own":               {wantURL: "http://127.0.0.1:7777", wantKey: "local"},
		"this machine":          {url: "http://127.0.0.1:9", wantURL: "http://127.0.0.1:9", wantKey: "local"},
		"localhost":             {url: "http://localhost:9/", wantURL: "http://localhost:9", wantKey: "local"},
		"another machine":       {url: "https://far.example", wantURL: "https://far.example"},
		"another, by variable":  {env: map[string]string{"WRIT_URL": "https://far.example"}, wantURL: "https://far.example"},
		"another, and its data": {url: "https://far.example", data: ".writ", wantURL: "https://far.example", wantKey: "local"},
		"another, and its key":  {env: map[string]string{"WRIT_URL": "https://far.example", "WRIT_API_KEY": "k"}, wantURL: "https://far.example", wantKey: "k"},
		"nothing there":         {data: "none", wantURL: "http://127.0.0.1:8080"},
	} {
		t.Run(name, func(t *testing.T) {
			env := func(name string) string { return x.env[name] }
			got, err := find(IO{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard, Env: env}, x.url, x.data, "")
			if err != nil || got.URL.Value != x.wantURL || got.Key.Value != x.wantKey {
				t.Errorf("%+v %v", got, err)
			}
		})
	}
}
