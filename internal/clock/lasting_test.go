package clock

import (
	"context"
	"errors"
	"testing"
)

// TestLasting: what lasts ends with its process, and not with its caller; so does what is
// made of it.
func TestLasting(t *testing.T) {
	type key struct{}
	end, leave := context.WithCancel(t.Context())
	caller, away := context.WithCancel(context.WithValue(WithEnd(t.Context(), end), key{}, "value"))
	work, done := context.WithCancel(Lasting(caller))
	defer done()
	again := Lasting(work)
	away()
	if work.Err() != nil || again.Err() != nil || again.Value(key{}) != "value" {
		t.Errorf("when the caller has gone: %v, %v, value %v", work.Err(), again.Err(), again.Value(key{}))
	}
	leave()
	<-work.Done()
	<-again.Done()
	if !errors.Is(work.Err(), context.Canceled) {
		t.Errorf("at the end: %v", work.Err())
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if Lasting(gone).Err() != nil {
		t.Error("where nobody says when it ends it has ended")
	}
}
