//go:build linux && (amd64 || arm64)

package sandbox

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDriversAccepted(t *testing.T) {
	for _, tt := range []struct {
		only, minimum string
		want          []string // nil: refused
	}{
		{"", "", DriverNames()},
		{"", Namespaces, []string{Namespaces}},
		{"", Landlock, DriverNames()},
		{Landlock, "", []string{Landlock}},
		{Namespaces, "", []string{Namespaces}},
		{"magic", "", nil},
		{"", "magic", nil},
	} {
		c, err := Config{Driver: tt.only, Minimum: tt.minimum}.normalize()
		if diff := cmp.Diff(tt.want, c.tried); diff != "" || (err == nil) != (tt.want != nil) {
			t.Errorf("%q from %q: %v %s", tt.only, tt.minimum, err, diff)
		}
	}
}

func TestLimitsAreRefused(t *testing.T) {
	for _, l := range []Limits{{Wall: -1}, {Memory: 1 << 20}, {Files: 2}} {
		if _, err := l.normalize(); err == nil {
			t.Errorf("%+v accepted", l)
		}
	}
}
