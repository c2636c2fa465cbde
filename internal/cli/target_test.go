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
	config := filepath.Join(dir, "config")
	files := map[string]string{
		datadir.KeyFile(".writ"): "local\n", datadir.AddressFile(".writ"): "http://127.0.0.1:7777\n", "far.key": "far\n",
		filepath.Join(config, "writ", "contexts.json"): `{"contexts":{"far":{"url":"https://far.example"},"keyed":{"url":"https://far.example","key_file":"far.key"},"here":{"data":".writ"}}}`,
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
		env                map[string]string
		context, url, data string
		wantURL, wantKey   string
	}{
		"its own":                 {wantURL: "http://127.0.0.1:7777", wantKey: "local"},
		"this machine":            {url: "http://127.0.0.1:9", wantURL: "http://127.0.0.1:9", wantKey: "local"},
		"localhost":               {url: "http://localhost:9/", wantURL: "http://localhost:9", wantKey: "local"},
		"another machine":         {url: "https://far.example", wantURL: "https://far.example"},
		"another, by variable":    {env: map[string]string{"WRIT_URL": "https://far.example"}, wantURL: "https://far.example"},
		"another, and its data":   {url: "https://far.example", data: ".writ", wantURL: "https://far.example", wantKey: "local"},
		"another, and its key":    {env: map[string]string{"WRIT_URL": "https://far.example", "WRIT_API_KEY": "k"}, wantURL: "https://far.example", wantKey: "k"},
		"a context":               {context: "far", wantURL: "https://far.example"},
		"a context with a key":    {context: "keyed", wantURL: "https://far.example", wantKey: "far"},
		"a context over all else": {context: "here", env: map[string]string{"WRIT_URL": "https://far.example", "WRIT_API_KEY": "k"}, wantURL: "http://127.0.0.1:7777", wantKey: "local"},
		"a context in use":        {env: map[string]string{"WRIT_CONTEXT": "keyed"}, wantURL: "https://far.example", wantKey: "far"},
		"data over the context":   {env: map[string]string{"WRIT_CONTEXT": "keyed"}, data: ".writ", wantURL: "http://127.0.0.1:7777", wantKey: "local"},
		"a context, other URL":    {env: map[string]string{"WRIT_CONTEXT": "keyed"}, url: "https://third.example", wantURL: "https://third.example"},
		"nothing there":           {data: "none", wantURL: "http://127.0.0.1:8080"},
	} {
		t.Run(name, func(t *testing.T) {
			env := func(name string) string {
				if name == "XDG_CONFIG_HOME" {
					return config
				}
				return x.env[name]
			}
			got, err := find(IO{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard, Env: env}, x.context, x.url, x.data, "")
			if err != nil || got.URL.Value != x.wantURL || got.Key.Value != x.wantKey {
				t.Errorf("%+v %v", got, err)
			}
		})
	}
}
