package executors

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func TestLayout(t *testing.T) {
	for in, want := range map[string]string{
		`[]`:                              "[]\n",
		`{}`:                              "{}\n",
		`"a,[b]"`:                         "\"a,[b]\"\n",
		`[1, 2]`:                          "[\n1,\n2\n]\n",
		`[[1,2],[3]]`:                     "[\n[1,2],\n[3]\n]\n",
		`{"a":[{"b":[1,2]},"x,y"],"c":1}`: "{\"a\":[\n{\"b\":[1,2]},\n\"x,y\"\n],\"c\":1}\n",
		`{"a":{"b":[1,[]]},"c":[ ]}`:      "{\"a\":{\"b\":[\n1,\n[]\n]},\"c\":[]}\n",
	} {
		got, err := layout(json.RawMessage(in))
		if err != nil || string(got) != want {
			t.Errorf("%s: %q, %v; want %q", in, got, err, want)
		}
	}
}

// FuzzLayout: a document laid out is the same document, whatever it holds.
func FuzzLayout(f *testing.F) {
	for _, seed := range []string{`[]`, `{"a":["\\","]\"",[[]],{}]}`, `[1,[2,{"x":[3]}],"é\u2028"]`, strings.Repeat("[", 50) + strings.Repeat("]", 50)} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var want bytes.Buffer
		if json.Compact(&want, in) != nil {
			return
		}
		out, err := layout(in)
		if err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		if err := json.Compact(&got, out); err != nil || !bytes.Equal(got.Bytes(), want.Bytes()) {
			t.Errorf("%q became %q: %v", in, out, err)
		}
	})
}
