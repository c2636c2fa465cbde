// Package plainjsontest holds readers that are built on plainjson to encoding/json.
package plainjsontest

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Agree checks that quick reads what encoding/json makes of want (taken: it must;
// else it must leave it to the decoder), and that of no document with a byte
// changed it reads anything else than encoding/json does.
func Agree[T any](t *testing.T, want T, quick func([]byte, *T) bool, taken bool) {
	t.Helper()
	raw, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got T
	if quick(raw, &got) != taken {
		t.Fatalf("%s: read quickly: %v", raw, !taken)
	}
	if diff := cmp.Diff(want, got); taken && diff != "" {
		t.Fatal(diff)
	}
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // G404: the same each time
	for i := range raw {
		for range 16 {
			changed := bytes.Clone(raw)
			changed[i] = byte(random.Uint32()) //nolint:gosec // G115: any byte
			var got, slow T
			if !quick(changed, &got) {
				continue
			}
			if err := json.Unmarshal(changed, &slow); err != nil {
				t.Fatalf("%q is read quickly: %v", changed, err)
			}
			if diff := cmp.Diff(slow, got); diff != "" {
				t.Fatalf("%q: %s", changed, diff)
			}
		}
	}
}
