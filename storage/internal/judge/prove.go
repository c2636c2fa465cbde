package judge

import "aob.dev/writ/storage"

// Proved is a stored entry with what its parts say in the place of what is stored
// beside them.
type Proved struct {
	storage.Entry
	Keyed bool // Key is the parts' own
	Wrong bool // something else was stored beside the parts
}

// Prove an entry by its parts: they are under the ledger's leaf.
func Prove(e storage.Entry) Proved {
	p := Proved{Entry: e}
	f, ok := storage.Follow(e.Record)
	if !ok {
		return p // the parts do not say it: what is stored has to do
	}
	p.Keyed = f.Keyed
	take := f.Take && (e.Take || !f.Refused) // a refusal that takes none is recorded again, at worst
	p.Wrong = e.Of != f.Of || e.Open != f.Open || e.Take != take
	p.Of, p.Open, p.Take, p.Key, p.Refused = f.Of, f.Open, take, f.Key, f.Refused && take
	return p
}
