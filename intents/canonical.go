package intents

import (
	"github.com/gowebpki/jcs"
)

// Canonical gives the RFC 8785 bytes of a JSON document, refusing what is not
// strict I-JSON: bytes that are not UTF-8, lone surrogates, duplicate member
// names, depth over MaxDepth, and numbers whose value RFC 8785 would change.
func Canonical(raw []byte) ([]byte, error) {
	out, err := jcs.Transform(raw)
	if err != nil {
		return nil, Refuse(SchemaInvalid, "", "not strict JSON: "+err.Error())
	}
	return out, nil
}
