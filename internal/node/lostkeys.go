package node

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"aob.dev/writ/internal/health"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/sqlite"
)

// erasedParts are the records, among those read at a start, that have lost parts.
type erasedParts struct {
	of map[int64]erasedPart // by position
}

// erasedPart is the intent that a record is about, and its kind.
type erasedPart struct {
	intent int64
	kind   storage.Kind
}

func (p *erasedParts) observe(e storage.Entry) {
	if len(e.Record.Erased) == 0 {
		return
	}
	if p.of == nil {
		p.of = make(map[int64]erasedPart)
	}
	intent := e.Record.Position
	if e.Record.Kind == storage.KindOutcome {
		intent = e.Target
	}
	p.of[e.Record.Position] = erasedPart{intent, e.Record.Kind}
}

// unexplained are the records that no erasure names, in order: all erasures of what was read at a
// start are pending.
func (p *erasedParts) unexplained(erasures []state.Erasure) []int64 {
	for _, e := range erasures {
		maps.DeleteFunc(p.of, func(_ int64, x erasedPart) bool {
			named := slices.ContainsFunc(e.Parts, func(part string) bool { return state.ErasedParts[x.kind][part] != nil })
			return x.intent == e.Position && named
		})
	}
	return slices.Sorted(maps.Keys(p.of))
}

// noErasure reports records that have lost parts although no record.erase in the log says so: their
// keys were overwritten by somebody else, or by an erasure that a restored log lacks.
func (n *Node) noErasure(positions []int64) {
	for _, at := range positions {
		n.keysLost(fmt.Errorf("record %d has lost parts, and no record.erase in the log took them away: erase them by an operator's intent, so that the log explains it", at))
	}
}

// keysLost reports that erasable parts cannot be read, although nobody erased them. They read as
// erased; everything else works.
func (n *Node) keysLost(err error) {
	n.cfg.Log.Error("keys of erasable parts are lost", slog.String("error", err.Error()))
	n.health.Raise(health.Condition{
		Name: conditionKeys, Reason: "keys of erasable parts are missing, changed, or overwritten without an erasure: those parts of the journal cannot be read",
		Do: "stop writ, put the newest files of " + sqlite.KeysName + "/ back, erase what is listed again, and check: writ audit fsck --data DIR",
	})
}
