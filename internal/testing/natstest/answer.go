package natstest

import (
	"errors"
	"io"
	"syscall"
	"time"
)

// Answer connects until the server says whether it lets the connection in. A server that
// refuses hangs up after its answer: what was under way to it then can break the connection
// before the answer is read, which is no evidence about the credentials.
func Answer(connect func() error) error {
	for deadline := time.Now().Add(Patience); ; {
		err := connect()
		if !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) || time.Now().After(deadline) {
			return err
		}
	}
}
