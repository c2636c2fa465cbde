package judge

import (
	"errors"
	"fmt"

	"aob.dev/writ/storage"
)

// Prove reads an entry from its parts, which the ledger's leaf covers: they override
// what is stored beside them, and only they have the key of an intent. wrong: what is beside
// them differs. The error reports an intent whose parts do not give its key.
func Prove(stored storage.Entry) (e storage.Entry, wrong bool, err error) {
	e = stored
	f, ok := storage.Follow(e.Record)
	if ok {
		take := f.Take && (e.Take || !f.Refused) // a refusal that takes none is recorded again, at worst
		e.Target, e.Open, e.Take, e.Key, e.Refused = f.Target, f.Open, take, f.Key, f.Refused && take
	}
	if e.Take && !f.Keyed {
		return e, false, fmt.Errorf("position %d: %w", e.Record.Position, errKey)
	}
	return e, stored.Target != e.Target || stored.Open != e.Open || stored.Take != e.Take, nil
}

var errKey = errors.New("the parts of the intent do not tell the idempotency key that it takes")

// CheckKeys checks that each entry that takes a key takes the one that its parts give:
// the key is stored nowhere else.
func CheckKeys(entries []storage.Entry) error {
	for i, e := range entries {
		if !e.Take {
			continue
		}
		if f, _ := storage.Follow(e.Record); !f.Keyed || f.Key != e.Key {
			return fmt.Errorf("commit: entry %d: %w", i, errKey)
		}
	}
	return nil
}
