package sandbox

import (
	"os/exec"
	"runtime"
)

// spawner starts all boxes from one operating system thread. The parent death
// signal fires when the thread that forked ends, not the process, and Go ends
// threads when it likes; so this one belongs to a goroutine that lives as long
// as the sandbox. When it ends, the kernel kills every box that is left.
type spawner struct {
	requests chan func()
	done     chan struct{}
}

func newSpawner() *spawner {
	s := &spawner{requests: make(chan func()), done: make(chan struct{})}
	go s.run()
	return s
}

func (s *spawner) run() {
	// Never unlocked: the thread ends with the goroutine.
	runtime.LockOSThread()
	defer close(s.done)
	for do := range s.requests {
		do()
	}
}

func (s *spawner) start(cmd *exec.Cmd) error {
	result := make(chan error, 1)
	s.requests <- func() { result <- cmd.Start() }
	return <-result
}

// close ends the thread. No start may follow.
func (s *spawner) close() {
	close(s.requests)
	<-s.done
}
