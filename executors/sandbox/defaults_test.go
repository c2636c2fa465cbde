package sandbox

import (
	"testing"
	"time"
)

// What a run gets that asks for nothing.
func TestDefaultLimits(t *testing.T) {
	l, err := Limits{}.normalize()
	if err != nil || l.Wall != 30*time.Second || l.Output != 500_000 {
		t.Errorf("%+v, %v", l, err)
	}
	if l, err = (Limits{Wall: time.Second}).normalize(); err != nil || l.Wall != time.Second {
		t.Errorf("%+v, %v", l, err)
	}
}
