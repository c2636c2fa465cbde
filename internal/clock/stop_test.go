package clock

import (
	"context"
	"errors"
	"testing"
)

// TestUntilStop: work goes on when its client disconnects, and ends when the process stops.
func TestUntilStop(t *testing.T) {
	process, stop := context.WithCancelCause(t.Context())
	request, disconnect := context.WithCancel(process)
	gone, end := UntilStop(request)
	defer end()
	disconnect()
	if gone.Err() != nil || Stopping(request) {
		t.Errorf("ended with the client: %v", gone.Err())
	}
	request, disconnect = context.WithCancel(process)
	defer disconnect()
	waiting, end := UntilStop(request)
	defer end()
	stop(ErrStopping)
	<-waiting.Done()
	if !Stopping(waiting) || !Stopping(request) || Stopping(gone) {
		t.Errorf("%v, %v, %v", context.Cause(waiting), context.Cause(request), context.Cause(gone))
	}
}

// TestOverStop: an answer can still be given after the stop, and not to a client that has
// disconnected.
func TestOverStop(t *testing.T) {
	process, stop := context.WithCancelCause(t.Context())
	request, disconnect := context.WithCancel(process)
	gone, end := OverStop(request)
	defer end()
	disconnect()
	<-gone.Done()
	request, disconnect = context.WithCancel(process)
	defer disconnect()
	answering, end := OverStop(request)
	defer end()
	work, end := WithStop(answering, request)
	defer end()
	stop(ErrStopping)
	<-work.Done()
	if answering.Err() != nil || !Stopping(work) {
		t.Errorf("%v, %v", answering.Err(), context.Cause(work))
	}
}

// TestDoUntilStop: the result of work that ends in time, also when the client has disconnected;
// none of work that a stop leaves; and panics are the caller's.
func TestDoUntilStop(t *testing.T) {
	process, stop := context.WithCancelCause(t.Context())
	request, disconnect := context.WithCancel(process)
	disconnect()
	if got, ok := DoUntilStop(request, func() int { return 7 }); got != 7 || !ok {
		t.Errorf("%d, %v", got, ok)
	}
	func() {
		defer func() {
			if r := recover(); !errors.Is(r.(error), ErrStopping) {
				t.Errorf("recovered %v", r)
			}
		}()
		DoUntilStop(process, func() int { panic(ErrStopping) })
	}()
	free := make(chan int)
	stop(ErrStopping)
	if got, ok := DoUntilStop(process, func() int { return <-free }); ok {
		t.Errorf("%d", got)
	}
	close(free)
}
