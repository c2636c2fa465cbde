package ledger_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/testing/egresstest"
	"aob.dev/writ/internal/testing/journaltest"
	"aob.dev/writ/storage/ledger"
)

// witness is one as C2SP tlog-witness has it, written from the specification
// with the Go checksum database's libraries: it shares no code with the client.
type witness struct {
	name    string
	key     ed25519.PrivateKey
	log     note.Verifier
	origin  string
	answers chan int // status of each request

	mu   sync.Mutex // guards what follows
	size int64
	root tlog.Hash
	lie  func(text []byte) []byte // what it signs in place of a checkpoint
	down bool
}

func newWitness(name string, log note.Verifier) *witness {
	seed := sha256.Sum256([]byte(name))
	return &witness{name: name, key: ed25519.NewKeyFromSeed(seed[:]), log: log, origin: log.Name(), answers: make(chan int, 100)}
}

func (w *witness) vkey() string {
	key := append([]byte{4}, w.key.Public().(ed25519.PublicKey)...)
	sum := sha256.Sum256(append([]byte(w.name+"\n"), key...))
	return fmt.Sprintf("%s+%x+%s", w.name, sum[:4], base64.StdEncoding.EncodeToString(key))
}

func (w *witness) ServeHTTP(res http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	status, answer := http.StatusBadRequest, ""
	if err == nil && req.Method == http.MethodPost && req.URL.Path == "/add-checkpoint" {
		status, answer = w.add(string(body))
	}
	res.WriteHeader(status)
	_, _ = io.WriteString(res, answer) // the client may have closed
	w.answers <- status
}

func (w *witness) add(body string) (int, string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.down {
		return http.StatusServiceUnavailable, ""
	}
	head, checkpoint, ok := strings.Cut(body, "\n\n")
	lines := strings.Split(head, "\n")
	number, oldOK := strings.CutPrefix(lines[0], "old ")
	old, err := strconv.ParseInt(number, 10, 64)
	if !ok || !oldOK || err != nil || len(lines) > 64 {
		return http.StatusBadRequest, ""
	}
	var proof tlog.TreeProof
	for _, line := range lines[1:] {
		raw, err := base64.StdEncoding.DecodeString(line)
		if err != nil || len(raw) != tlog.HashSize {
			return http.StatusBadRequest, ""
		}
		proof = append(proof, tlog.Hash(raw))
	}
	text, _, _ := strings.Cut(checkpoint, "\n")
	if text != w.origin {
		return http.StatusNotFound, ""
	}
	n, err := note.Open([]byte(checkpoint), note.VerifierList(w.log))
	if err != nil {
		return http.StatusForbidden, ""
	}
	tree := strings.Split(n.Text, "\n")
	size, err1 := strconv.ParseInt(tree[1], 10, 64)
	root, err2 := tlog.ParseHash(tree[2])
	switch {
	case err1 != nil || err2 != nil || old > size:
		return http.StatusBadRequest, ""
	case old != w.size, old == size && w.size > 0 && root != w.root:
		return http.StatusConflict, fmt.Sprintf("%d\n", w.size)
	case old > 0 && old < size && tlog.CheckTree(proof, size, root, old, w.root) != nil, (old == 0 || old == size) && len(proof) > 0:
		return http.StatusUnprocessableEntity, ""
	}
	w.size, w.root = size, root
	return http.StatusOK, w.sign([]byte(n.Text))
}

// sign is the line "— name base64(key hash, time, signature)", as tlog-cosignature has it.
func (w *witness) sign(text []byte) string {
	if w.lie != nil {
		text = w.lie(text)
	}
	const at = 1_700_000_000
	sig := ed25519.Sign(w.key, append(fmt.Appendf(nil, "cosignature/v1\ntime %d\n", at), text...))
	key := append([]byte{4}, w.key.Public().(ed25519.PublicKey)...)
	sum := sha256.Sum256(append([]byte(w.name+"\n"), key...))
	raw := append(binary.BigEndian.AppendUint64(bytes.Clone(sum[:4]), at), sig...)
	return "— " + w.name + " " + base64.StdEncoding.EncodeToString(raw) + "\n"
}

// set changes the witness between requests.
func (w *witness) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

// wait until it has given an answer of a status.
func (w *witness) wait(t *testing.T, status int) {
	t.Helper()
	for {
		select {
		case got := <-w.answers:
			if got == status {
				return
			}
		case <-t.Context().Done():
			t.Fatalf("%s never answered %d", w.name, status)
		}
	}
}

// witnessed is a ledger that runs, and grows by intents of two records each.
func witnessed(t *testing.T) (w *world, more func(total int)) {
	t.Helper()
	j := journaltest.NewJournal(nil)
	w = newWorld(t, j)
	w.start()
	t.Cleanup(w.end)
	n := 0
	return w, func(total int) {
		for range total {
			if err := commit(t.Context(), j, "acme", n); err != nil {
				t.Fatal(err)
			}
			n++
		}
		w.published(j.Next())
	}
}

// treeHash of the first leaves, as the Go checksum database computes it.
func treeHash(t *testing.T, r *ledger.Reader, n, size int64) tlog.Hash {
	t.Helper()
	leaves := must[[][]byte](t)(r.Leaves(t.Context(), 0, n, size))
	var stored []tlog.Hash
	read := tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		var out []tlog.Hash
		for _, i := range indexes {
			out = append(out, stored[i])
		}
		return out, nil
	})
	for i, leaf := range leaves {
		stored = append(stored, must[[]tlog.Hash](t)(tlog.StoredHashes(int64(i), leaf, read))...)
	}
	return must[tlog.Hash](t)(tlog.TreeHash(n, read))
}

// TestWitnesses: an honest witness cosigns each checkpoint that it is shown, one
// that lags gets the proof from its size, and one that lies or is down
// delays nothing.
func TestWitnesses(t *testing.T) {
	w, more := witnessed(t)
	more(3)
	honest, lags, lies, down := newWitness("honest.example", w.verifier()), newWitness("lags.example", w.verifier()), newWitness("lies.example", w.verifier()), newWitness("down.example", w.verifier())
	l := w.ledger
	lies.lie = func(text []byte) []byte { return append(bytes.Clone(text), '\n') }
	down.down = true
	lags.size, lags.root = 3, treeHash(t, l.Reader, 3, 6)
	var list []ledger.Witness
	var keys []*ledger.WitnessKey
	for _, x := range []*witness{honest, lags, lies, down} {
		server := httptest.NewServer(x)
		t.Cleanup(server.Close)
		parsed, err := ledger.ParseWitness(x.vkey() + " " + server.URL + "/")
		if err != nil {
			t.Fatal(err)
		}
		if parsed.Key.String() != x.vkey() {
			t.Errorf("%s became %s", x.vkey(), parsed.Key)
		}
		list, keys = append(list, parsed), append(keys, parsed.Key)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	asking := ledger.NewWitnesses(l.Reader, l.Keys, slog.New(slog.DiscardHandler), list...)
	go func() { ended <- asking.Run(ctx) }()

	honest.wait(t, http.StatusOK)
	lags.wait(t, http.StatusConflict) // the request assumed that it had seen nothing
	lags.wait(t, http.StatusOK)
	lies.wait(t, http.StatusOK)
	down.wait(t, http.StatusServiceUnavailable)
	more(2)
	honest.wait(t, http.StatusOK)
	lags.wait(t, http.StatusOK)
	down.set(func() { down.down = false })
	down.wait(t, http.StatusOK)
	look := time.NewTicker(10 * time.Millisecond) // until its answer has been written down
	defer look.Stop()
	c, err := l.LatestCosigned(t.Context(), l.Keys()...)
	for ; err == nil && len(ledger.Cosigners(c.Note, keys...)) < 3 && t.Context().Err() == nil; c, err = l.LatestCosigned(t.Context(), l.Keys()...) {
		<-look.C
	}
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	got := ledger.Cosigners(c.Note, keys...)
	if c.Size != 10 || strings.Join(got, " ") != "honest.example lags.example down.example" {
		t.Errorf("size %d cosigned by %v:\n%s", c.Size, got, c.Note)
	}
	published, err := l.Checkpoint(t.Context(), l.Keys()...)
	if err != nil || published.Size != 10 || !bytes.Equal(published.Root, c.Root) {
		t.Errorf("%+v %v", published, err)
	}
}

// TestWitnessAhead: a witness that knows more of the log than exists, and
// one that knows another log, are not persuaded.
func TestWitnessAhead(t *testing.T) {
	w, more := witnessed(t)
	more(3)
	l := w.ledger
	for name, x := range map[string]func(*witness){
		"ahead":   func(x *witness) { x.size = 100 },
		"another": func(x *witness) { x.size, x.root = 3, tlog.Hash{1} },
		"unknown": func(x *witness) { x.origin = "another/log" },
	} {
		wit := newWitness(name, w.verifier())
		x(wit)
		server := httptest.NewServer(wit)
		parsed, err := ledger.ParseWitness(wit.vkey() + " " + server.URL)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- ledger.NewWitnesses(l.Reader, l.Keys, slog.New(slog.DiscardHandler), parsed).Run(ctx)
		}()
		wit.wait(t, map[string]int{"ahead": http.StatusConflict, "another": http.StatusUnprocessableEntity, "unknown": http.StatusNotFound}[name])
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		server.Close()
		if c, err := l.LatestCosigned(t.Context(), l.Keys()...); err == nil {
			t.Errorf("%s: cosigned %+v", name, c)
		}
	}
}

// TestWitnessFaults: a failing witness is reported in words, with the setting that helps.
func TestWitnessFaults(t *testing.T) {
	t.Parallel()
	w, more := witnessed(t)
	more(3)
	servers := egresstest.Servers(t)
	for name, says := range map[string]string{
		"Not Found": "it does not know this log, which has to be added there (HTTP 404)",
		"Forbidden": "it knows this log by another key (HTTP 403)",
		"OK":        "its answer has no cosignature by the key that is named for it",
		"Conflict":  "it has another size of this log, and does not say which (HTTP 409)",
	} {
		b := servers[name]
		b.Says, b.Do = says, cmp.Or(b.Do, "correct ")
		if b.URL == "" {
			code := map[string]int{"OK": http.StatusOK, "Conflict": http.StatusConflict}[name]
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }))
			t.Cleanup(s.Close)
			b.URL = s.URL
		}
		if name == "Conflict" {
			b.Do = "see its log"
		}
		servers[name] = b
	}
	for name, b := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := must[ledger.Witness](t)(ledger.ParseWitness(newWitness("w.example", w.verifier()).vkey() + " " + b.URL))
			var log bytes.Buffer
			ledger.NewWitnesses(w.ledger.Reader, w.ledger.Keys, slog.New(slog.NewJSONHandler(&log, nil)), x).Once(t.Context())
			var line struct{ Witness, Error string }
			if err := json.Unmarshal(log.Bytes(), &line); err != nil || line.Witness != "w.example" {
				t.Fatalf("%v: %s", err, log.String())
			}
			b.Check(t, errors.New(line.Error), "the log goes on, and its checkpoint waits for the cosignature")
			if name != "Conflict" && name != "Internal Server Error" && !strings.Contains(line.Error, "correct witnesses (--witnesses)") {
				t.Error(line.Error)
			}
		})
	}
}

// TestWitnessKeys: what is not a cosignature key is refused.
func TestWitnessKeys(t *testing.T) {
	good := newWitness("w.example", newWorld(t, nil).verifier()).vkey()
	plain, err := ledger.VKey("w.example", must[intents.Signer](t)(intents.GenerateSigner(intents.RoleLedger)).Public())
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"", "x", plain, "v" + good, good + "A", strings.Replace(good, "+", " ", 1), good[:len(good)-4]} {
		if _, err := ledger.ParseWitnessKey(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
		if _, err := ledger.ParseWitness(bad + " https://w.example"); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	for _, bad := range []string{good, good + " w.example", good + " ftp://w.example"} {
		if _, err := ledger.ParseWitness(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
