package intents

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/schemas"
)

// fullBody has every member that an envelope can have.
func fullBody() Body {
	digest := "sha256:" + strings.Repeat("0f", 32)
	b := testBody()
	b.Intent.Args = json.RawMessage(`{"a":[1,{"b":null}],"skill":"x"}`)
	b.Actor.Roles = []string{"user", "auditor"}
	b.Constraints.Capabilities = []string{"skills:call", "skills:call:feed"}
	b.Constraints.IdempotencyKey = digest
	b.Context = &Context{
		SessionID: "s", TurnID: "t", PlanID: "p", Revision: 1, Step: 1_000_000, TaskID: "k", RunID: "r", NodeID: "n",
		Occurrence: 2, Ask: "1.0", Call: "999999.999", Agent: &Agent{Name: "ranker", Digest: digest}, Cause: digest, Labels: map[string]string{"team": "x y", "empty": ""},
	}
	return b
}

func canonicalBody(t testing.TB, b any) []byte {
	t.Helper()
	payload, err := marshalCanonical(b)
	if err != nil {
		t.Fatal(err)
	}
	return payload
}

// agree: a payload is an envelope exactly if the schema takes it, and then it says
// what encoding/json reads.
func agree(t *testing.T, payload []byte) (taken bool) {
	t.Helper()
	if _, ok := scan(payload, false); !ok {
		return false // never comes as far
	}
	got, err := ReadBody(payload)
	if found := schemas.Unsigned().ValidateBytes(payload); (err == nil) != (len(found) == 0) {
		t.Fatalf("%v, the schema says %v: %s", err, found, payload)
	}
	if err != nil {
		return false
	}
	var want Body
	if err := json.Unmarshal(payload, &want); err != nil {
		t.Fatalf("%v: %s", err, payload)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%s\n(-encoding/json +ours):\n%s", payload, diff)
	}
	recorded, err := Signed{Payload: string(payload)}.Body()
	if diff := cmp.Diff(want, recorded); diff != "" || err != nil {
		t.Fatalf("%v %s\n(-encoding/json +recorded):\n%s", err, payload, diff)
	}
	return true
}

func TestBodyIsRead(t *testing.T) {
	minimal := testBody()
	minimal.Context, minimal.TraceID, minimal.Actor.Grant, minimal.Constraints.Capabilities = nil, "", "", nil
	minimal.Intent.Args = json.RawMessage(`{}`)
	empty := fullBody()
	empty.Context = &Context{}
	for name, b := range map[string]Body{"full": fullBody(), "usual": testBody(), "minimal": minimal, "empty context": empty} {
		if !agree(t, canonicalBody(t, b)) {
			t.Errorf("%s: refused", name)
		}
		if c, _ := scan(canonicalBody(t, b), true); !plainEnvelope(c.tree) {
			t.Errorf("%s: only the schema takes it", name)
		}
	}
}

// TestBodyVectors: every vector that comes as far as its members.
func TestBodyVectors(t *testing.T) {
	files, err := filepath.Glob("testdata/vectors/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no vectors: %v", err)
	}
	taken := 0
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var v vector
		if err := json.Unmarshal(raw, &v); err != nil {
			t.Fatal(err)
		}
		text := []byte(v.Raw)
		if v.Intent != nil {
			text = v.Intent
		}
		c, err := canonicalize(text, false)
		if err != nil || c.sig.to == 0 {
			continue
		}
		if payload, _ := c.without(); agree(t, payload) {
			taken++
		}
	}
	if taken == 0 {
		t.Error("no vector is an envelope")
	}
}

// values are at the limits of what members may be.
var values = func() []any {
	digest := "sha256:" + strings.Repeat("0f", 32)
	out := []any{
		nil, true,
		[]any{},
		map[string]any{},
		"", " ", "é", "\n", "\"", "\x7f", "a:b", "a:b:c", "a:b:", "A:b", "a:b:C", "a:b:c:d", "a.b.c", "a..c", "a.b.c.d", "a.b=.c",
		digest, strings.ToUpper(digest), digest[:70], digest + "0", strings.Repeat("0a", 16), strings.Repeat("0A", 16), strings.Repeat("0", 31),
		"2026-11-20T10:00:00.000Z", "2026-02-30T10:00:00.000Z", "2024-02-29T23:59:59.999Z", "2026-02-29T10:00:00.000Z", "2026-11-20T24:00:00.000Z",
		"0000-01-01T00:00:00.000Z", "2026-11-20T10:00:60.000Z", "2026-11-20T10:00:00Z", "2026-11-20T10:00:00,000Z", "2026-11-20t10:00:00.000Z", "2026-13-01T10:00:00.000Z",
		"2026-00-10T10:00:00.000Z", "2026-01-00T10:00:00.000Z", "1.0", "1.1",
	}
	for _, n := range []int{63, 64, 65, 128, 129, 255, 256, 257} {
		out = append(out, strings.Repeat("a", n), strings.Repeat("é", n))
	}
	for _, n := range []float64{-1, 0, 1, 1.5, 9, 10, 299, 300, 301, 999_999, 1_000_000, 1_000_001, 9_999_999, 1e15, 1e21} {
		out = append(out, n)
	}
	for _, n := range []int{32, 33, 64, 65} {
		var roles, capabilities []any
		labels := map[string]any{}
		for i := range n {
			name := "r" + strings.Repeat("x", i)
			roles, capabilities = append(roles, name), append(capabilities, name+":v")
			if i < 64 {
				labels[name] = "v"
			}
		}
		out = append(out, roles, capabilities, labels)
	}
	return append(out, []any{"a", "a"}, []any{"a:b", "a:b"}, []any{1.0}, map[string]any{"a": 1.0}, map[string]any{"a": strings.Repeat("a", 257)},
		map[string]any{"a b": "c"}, map[string]any{"é": "c"}, map[string]any{"name": "a"}, map[string]any{"name": "a", "digest": digest})
}()

var names = []string{
	"kid", "tool", "version", "intent", "actor", "constraints", "context", "trace_id", "sig", "type", "args", "user_id", "tenant", "roles", "grant", "issued_at",
	"ttl_sec", "audience", "idempotency_key", "capabilities", "session_id", "turn_id", "plan_id", "revision", "step", "task_id", "run_id", "node_id",
	"occurrence", "agent", "ask", "call", "cause", "labels", "name", "digest", "Type", "", "x",
}

// mutateBody changes one place of a document.
func mutateBody(rnd *rand.Rand, object map[string]any) {
	for {
		keys := make([]string, 0, len(object))
		for k := range object {
			keys = append(keys, k)
		}
		if len(keys) == 0 {
			return
		}
		slices.Sort(keys)
		k := keys[rnd.IntN(len(keys))]
		if inner, ok := object[k].(map[string]any); ok && rnd.IntN(4) > 0 {
			object = inner
			continue
		}
		switch rnd.IntN(5) {
		case 0:
			delete(object, k)
		case 1:
			object[names[rnd.IntN(len(names))]] = values[rnd.IntN(len(values))]
		case 2:
			if list, ok := object[k].([]any); ok {
				object[k] = append(slices.Clone(list), values[rnd.IntN(len(values))])
				return
			}
			fallthrough
		default:
			object[k] = values[rnd.IntN(len(values))]
		}
		return
	}
}

// TestBodyMutations: a member at a time, and bytes at random.
func TestBodyMutations(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	base := canonicalBody(t, fullBody())
	taken, refused := 0, 0
	count := func(payload []byte) {
		if agree(t, payload) {
			taken++
		} else {
			refused++
		}
	}
	for range 20_000 {
		var object map[string]any
		if err := json.Unmarshal(base, &object); err != nil {
			t.Fatal(err)
		}
		for range 1 + rnd.IntN(2) {
			mutateBody(rnd, object)
		}
		if raw, err := json.Marshal(object); err == nil {
			if payload, err := Canonical(raw); err == nil {
				count(payload)
			}
		}
		payload := bytes.Clone(base)
		payload[rnd.IntN(len(payload))] = byte(rnd.IntN(128))
		count(payload)
	}
	if taken < 1000 || refused < 1000 {
		t.Errorf("%d taken, %d not: the mutations show little", taken, refused)
	}
}

// TestBodyViolations: violations are reported as the schema reports them.
func TestBodyViolations(t *testing.T) {
	b := fullBody()
	b.Constraints.TTLSec, b.TraceID = 301, "x\u200b"
	_, err := ReadBody(canonicalBody(t, b))
	var invalid *Refusal
	if !errors.As(err, &invalid) || len(invalid.Violations) != 2 {
		t.Errorf("%v", err)
	}
}

func FuzzBody(f *testing.F) {
	f.Add(canonicalBody(f, fullBody()))
	f.Add(canonicalBody(f, testBody()))
	f.Fuzz(func(t *testing.T, payload []byte) { agree(t, payload) })
}

func BenchmarkReadBody(b *testing.B) {
	payload := canonicalBody(b, testBody())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ReadBody(payload); err != nil {
			b.Fatal(err)
		}
	}
}
