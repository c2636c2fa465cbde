//go:build linux && (amd64 || arm64)

package sandbox

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDriversAccepted(t *testing.T) {
	for _, tt := range []struct {
		named   []string
		minimum string
		want    []string // nil: refused
	}{
		{nil, "", DriverNames()},
		{nil, Namespaces, []string{Namespaces}},
		{[]string{Landlock, Namespaces}, "", []string{Landlock, Namespaces}},
		{[]string{Landlock, Namespaces}, Namespaces, []string{Namespaces}},
		{[]string{Landlock}, Namespaces, nil},
		{[]string{"magic"}, "", nil},
		{nil, "magic", nil},
	} {
		c, err := Config{Drivers: tt.named, Minimum: tt.minimum}.normalize()
		if diff := cmp.Diff(tt.want, c.Drivers); diff != "" || (err == nil) != (tt.want != nil) {
			t.Errorf("%q from %q: %v %s", tt.named, tt.minimum, err, diff)
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
