package intents

import (
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
