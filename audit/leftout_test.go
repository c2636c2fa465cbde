package audit_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"aob.dev/writ/audit"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/ledger"
)

// TestRecordHiddenBehindItsLeaf: a bundle of the whole log shows every record: a bare leaf, which is in the tree as
// it should be, hides one.
func TestRecordHiddenBehindItsLeaf(t *testing.T) {
	w := newWorld(t)
	w.Want(w.Do(routertest.Intent{By: w.Planner, Type: "skill.find", Args: catalog.SkillFind{Query: "hidden"}}), intents.OK)
	at := w.find(storage.PartEnvelope, func(map[string]any) bool { return true })
	var out bytes.Buffer
	n := 0
	for line := range bytes.Lines(w.export(w.Journal, audit.Selection{})) {
		var l struct{ Record *audit.Entry }
		w.Must(json.Unmarshal(line, &l))
		switch r := l.Record; {
		case r != nil && r.Position >= at: // the intent and its outcome
			leaf := ledger.Leaf{At: r.At, Kind: r.Kind, Position: r.Position, RecordDigest: w.Records()[r.Position].Digest(), TenantTag: r.Tag, V: ledger.LeafVersion}
			line = fmt.Appendf(nil, `{"leaf":%s}`+"\n", leaf.Bytes())
		case bytes.HasPrefix(line, []byte(`{"end":`)):
			sum := sha256.Sum256(out.Bytes())
			line = fmt.Appendf(nil, `{"end":{"lines":%d,"sha256":%q}}`+"\n", n, hex.EncodeToString(sum[:]))
		}
		out.Write(line)
		n++
	}
	r := w.verify(out.Bytes(), audit.Options{Trust: w.trust()})
	if r.OK || r.FirstBad.Position != at || !strings.Contains(r.FirstBad.Reason, "left out") {
		t.Errorf("%+v, want at %d", r.FirstBad, at)
	}
}

// TestResolvedIntentResent: an intent that an operator resolved as never carried out may be sent
// again under its key.
func TestResolvedIntentResent(t *testing.T) {
	w := newWorld(t)
	w.Pin("pay", catalog.Once)
	w.Data("approval", `{"once":false}`)
	w.Bus.On("skill.call", routertest.Always(intents.Report{Status: intents.StatusIndetermined, Code: intents.Indeterminate, Reason: "cut off"}))
	call := w.Begun("plan_1", "pay").Started(1).CallIntent("pay", `{}`)
	first := w.Want(w.Do(call), intents.Indeterminate)
	w.Want(w.Admin("intent.resolve", catalog.IntentResolve{IntentID: first.IntentID, Status: "failed", Reason: "never arrived"}), intents.OK)
	if again := w.Want(w.Do(call), intents.Indeterminate); again.Replayed || *again.Position == *first.Position {
		t.Fatalf("%+v", again)
	}
	if r := w.verify(w.export(w.Journal, audit.Selection{}), audit.Options{Trust: w.trust(), Replay: true}); !r.OK {
		t.Error(r.FirstBad)
	}
}
