package intents

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestIsDigest(t *testing.T) {
	good := Digest([]byte("x"))
	if !IsDigest(good) {
		t.Errorf("%s is none", good)
	}
	for _, s := range []string{"", "sha256:", good[1:], good[:len(good)-1], good + "0", good + "\n", "\n" + good, strings.ToUpper(good), "cas://" + good} {
		if IsDigest(s) {
			t.Errorf("%q is one", s)
		}
	}
}

// TestReadSigned: a part reads the same in every spelling.
func TestReadSigned(t *testing.T) {
	want := Signed{Header: "h", Payload: "{\"a\":\"<&>\\n\u2028\x1f\"}", Sig: "s"}
	plain, err := MarshalPlain(want)
	if err != nil {
		t.Fatal(err)
	}
	escaped, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	canonical, err := Canonical(escaped)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range [][]byte{plain, escaped, canonical} {
		if got, err := ReadSigned(part); err != nil || got != want {
			t.Errorf("%s: %+v %v", part, got, err)
		}
	}
	for _, part := range []string{"", "[]", "null", `{"header":1}`, `{"sig":null,"header":[]}`, `{`, `"x"`} {
		if got, err := ReadSigned([]byte(part)); err == nil && got != (Signed{}) {
			t.Errorf("%s: %+v", part, got)
		}
	}
}
