package blobnats_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"aob.dev/writ/internal/testing/egresstest"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/blobnats"
)

// TestFaults: a failing server is reported in words, with the setting that helps.
func TestFaults(t *testing.T) {
	t.Parallel()
	broken := egresstest.Servers(t)
	at := func(b egresstest.Broken) string { return "nats://" + strings.TrimPrefix(b.URL, "http://") }
	off, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	run(t, off)
	guarded, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true, Username: "ana", Password: "right"})
	if err != nil {
		t.Fatal(err)
	}
	run(t, guarded)
	word := filepath.Join(t.TempDir(), "word")
	if err := os.WriteFile(word, []byte("ana:confidential"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		cfg      blobnats.Config
		says, do string
	}{
		"refuses":        {blobnats.Config{URL: at(broken["refuses"])}, "no server answers there", "start it, or correct blobs (--blobs"},
		"is silent":      {blobnats.Config{URL: at(broken["is silent"])}, "no answer in time", "start it, or correct blobs (--blobs"},
		"hangs up":       {blobnats.Config{URL: at(broken["hangs up"])}, "it closed the connection without an answer", "start it, or correct blobs (--blobs"},
		"JetStream off":  {blobnats.Config{URL: off.ClientURL()}, "JetStream is off", ""},
		"wrong password": {blobnats.Config{URL: guarded.ClientURL(), Credentials: word}, "it does not take the credentials", "correct blobs_credentials (--blobs-credentials)"},
		"no TLS":         {blobnats.Config{URL: strings.Replace(off.ClientURL(), "nats", "tls", 1)}, "it speaks no TLS", "correct blobs (--blobs"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := blobnats.Open(t.Context(), c.cfg)
			if err == nil || !errors.Is(err, storage.ErrUnavailable) {
				t.Fatal(err)
			}
			text, _, _ := strings.Cut(err.Error(), " (cause: ")
			if !strings.HasPrefix(text, "blobs on NATS at ") || !strings.Contains(text, c.says) || !strings.Contains(text, "; blobs that are kept there stay, and none is half written; "+c.do) ||
				strings.Contains(text, "nats: ") || strings.Contains(text, "confidential") {
				t.Error(err)
			}
		})
	}
}

// TestReadFaults: a lost connection is reported like one that was never made.
func TestReadFaults(t *testing.T) {
	b := open(t, serve(t).ClientURL())
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	_, _, err := b.Keep(t.Context(), "acme", strings.NewReader("text"))
	if err == nil || !errors.Is(err, storage.ErrUnavailable) || strings.Contains(err.Error(), "nats: ") && !strings.Contains(err.Error(), "(cause: ") || !strings.Contains(err.Error(), "; blobs that are kept there stay") {
		t.Error(err)
	}
}
