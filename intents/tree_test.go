package intents

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sameTree compares with encoding/json, for texts that are canonical.
func sameTree(t *testing.T, text []byte) bool {
	t.Helper()
	c, ok := scan(text, true)
	if !ok {
		return false
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var want any
	if err := d.Decode(&want); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	apart := scanner{text: string(text), plant: true, apart: true}
	copied, _ := apart.document()
	for _, got := range []any{c.tree, copied} {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%s (-encoding/json +ours):\n%s", text, diff)
		}
	}
	return true
}

// TestTree: the tree of a canonical text is what encoding/json reads.
func TestTree(t *testing.T) {
	for _, text := range []string{`{}`, `[]`, `""`, `null`, `true`, `false`, `0`, `-1.5e-300`, `{"a":{"b":[1,"é\n",null,[]]}}`, `{"\n":1}`, `"\u001f"`, `"😀"`} {
		if !sameTree(t, []byte(text)) {
			t.Errorf("%s is not canonical", text)
		}
	}
	r := rand.New(rand.NewPCG(1, 8785))
	same := 0
	for range 20_000 {
		d := document{r: r, kinds: 18 + r.IntN(8)}
		d.value(0)
		text, err := Canonical([]byte(d.b.String()))
		if err == nil && sameTree(t, text) {
			same++
		}
	}
	if same < 5000 {
		t.Errorf("only %d documents are canonical", same)
	}
}

func FuzzDecodeCanonical(f *testing.F) {
	f.Add([]byte(`{"a":[1,"é\n",null,true,false,{}],"b":-1.5}`))
	f.Fuzz(func(t *testing.T, text []byte) { sameTree(t, text) })
}

func TestStringArg(t *testing.T) {
	e := &Envelope{args: map[string]any{"a": "x", "b": json.Number("1")}}
	if e.StringArg("a") != "x" || e.StringArg("b") != "" || e.StringArg("c") != "" || (&Envelope{}).StringArg("a") != "" {
		t.Error("StringArg")
	}
}
