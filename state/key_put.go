package state

import (
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// keyPut puts the next version of the key set in force.
var keyPut = operators("key.put",
	func(v *View, _ Intent, a catalog.KeyPut) (Effect, error) {
		v.addRead(SubjectKeys)
		set, _, err := intents.OpenKeySet(a.KeySet, v.s.root)
		if err != nil {
			return Effect{}, illegal("/intent/args/key_set", err.Error())
		}
		if set.Version != v.s.keySet.Version+1 || set.Prev != intents.Digest([]byte(v.s.keySetToken)) {
			return Effect{}, illegal("/intent/args/key_set", "not the successor of the key set in force")
		}
		return accepted(SubjectKeys), nil
	},
	func(s *State, _ Intent, a catalog.KeyPut) error {
		set, keys, err := intents.OpenKeySet(a.KeySet, s.root)
		if err != nil {
			return err
		}
		s.keySet, s.keySetToken, s.keys = set, a.KeySet, keys
		return nil
	})
