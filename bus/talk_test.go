package bus_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"aob.dev/writ/bus"
	"aob.dev/writ/bus/natsserver"
)

// Messages of a task arrive in order before its answer, and the answer arrives however many there
// are: the last permitted message is reserved for it.
func TestFollow(t *testing.T) {
	s := start(t)
	task, manager := connect(t, s, natsserver.Task), connect(t, s, natsserver.Manager)
	subject := bus.AgentInstance("task", task.Instance())
	service := echo("task", bus.Agent("task"))
	service.Talkers = map[string]bus.Talker{subject: func(_ context.Context, data []byte, say func([]byte)) []byte {
		n, _ := strconv.Atoi(string(data))
		for i := range n {
			say(fmt.Append(nil, i))
		}
		return []byte("answer")
	}}
	stop := serve(t, task, service)
	for _, n := range []int{0, 3, 1000, bus.MaxReplies + 10} {
		// The detector makes 100,000 messages take most of patience.
		ctx, cancel := context.WithTimeout(t.Context(), 6*patience)
		var said, want []string
		answer, err := manager.Follow(ctx, subject, fmt.Append(nil, n), func(data []byte) { said = append(said, string(data)) })
		cancel()
		if string(answer) != "answer" || err != nil {
			t.Fatalf("after %d of %d messages: %q, %v", len(said), n, answer, err)
		}
		for i := range min(n, bus.MaxReplies-1) {
			want = append(want, strconv.Itoa(i))
		}
		if !slices.Equal(said, want) {
			t.Errorf("of %d messages came %d: %q", n, len(said), said)
		}
	}
	if got, err := request(t, manager, bus.Agent("task"), "x"); err != nil || got == "" {
		t.Errorf("a handler beside it: %q, %v", got, err)
	}
	stop()
	if _, err := manager.Follow(t.Context(), subject, nil, func([]byte) {}); !errors.Is(err, bus.ErrNoResponders) {
		t.Errorf("nobody serves: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := manager.Follow(ended, subject, nil, func([]byte) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("an ended context: %v", err)
	}
}
