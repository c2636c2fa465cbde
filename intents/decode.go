package intents

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"aob.dev/writ/schemas"
)

// Limits of an order (DESIGN §3).
const (
	MaxSize  = 48 << 10 // bytes, received and canonical
	MaxDepth = 32       // the root is 1
)

// Parse reads a received order: strict I-JSON within the limits, the shape of
// schemas/envelope.schema.json, a well-formed sig. It verifies nothing. The
// error is a *Refusal with SCHEMA_INVALID, PAYLOAD_TOO_LARGE or SIGNATURE_INVALID.
func Parse(raw []byte) (*Unverified, error) {
	if len(raw) > MaxSize {
		return nil, Refuse(PayloadTooLarge, "", "order has more than 49152 bytes")
	}
	canonical, err := Canonical(raw)
	if err != nil {
		return nil, err
	}
	var top map[string]json.RawMessage
	if err := json.Unmarshal(canonical, &top); err != nil {
		return nil, Refuse(SchemaInvalid, "", "order is not a JSON object")
	}
	var sig string
	if rawSig, ok := top["sig"]; !ok || json.Unmarshal(rawSig, &sig) != nil {
		return nil, Refuse(SignatureInvalid, "/sig", "sig must be a string: <protected header>..<signature>")
	}
	delete(top, "sig")
	payload, err := marshalCanonical(top)
	if err != nil {
		return nil, Refuse(SchemaInvalid, "", "order is not canonicalizable JSON")
	}
	header, signature, ok := strings.Cut(sig, "..")
	if !ok || strings.Contains(signature, ".") {
		return nil, Refuse(SignatureInvalid, "/sig", "sig must be a detached compact JWS: <protected header>..<signature>")
	}
	return newUnverified(payload, header, signature)
}

// newUnverified checks a canonical payload and its signature parts.
func newUnverified(payload []byte, header, sig string) (*Unverified, error) {
	if again, err := Canonical(payload); err != nil {
		return nil, err
	} else if !bytes.Equal(again, payload) {
		return nil, Refuse(SchemaInvalid, "", "payload is not canonical")
	}
	if len(payload) > MaxSize {
		return nil, Refuse(PayloadTooLarge, "", "order has more than 49152 canonical bytes")
	}
	if v := schemas.Envelope().ValidateBytes(payload); len(v) > 0 {
		r := Refuse(SchemaInvalid, v[0].Pointer, v[0].Reason)
		return nil, &InvalidError{Refusal: r, Violations: violations(v)}
	}
	kid, err := parseHeader(header, TypIntent)
	if err != nil {
		return nil, err
	}
	if raw, err := b64.DecodeString(sig); err != nil || len(raw) != 64 {
		return nil, Refuse(SignatureInvalid, "/sig", "signature must be 64 bytes in base64url without padding")
	}
	u := &Unverified{canonical: payload, header: header, sig: sig, kid: kid, id: IntentID(header, payload)}
	if err := json.Unmarshal(payload, &u.body); err != nil {
		return nil, Refuse(SchemaInvalid, "", "order does not match the envelope")
	}
	return u, nil
}

// InvalidError is a SCHEMA_INVALID refusal with all violations.
type InvalidError struct {
	*Refusal
	Violations []Violation
}

// Unwrap gives the refusal.
func (e *InvalidError) Unwrap() error { return e.Refusal }

// ViolationsOf an error, if it lists them.
func ViolationsOf(err error) []Violation {
	var e *InvalidError
	if errors.As(err, &e) {
		return e.Violations
	}
	return nil
}

// Invalid makes an InvalidError from schema violations under a pointer prefix.
func Invalid(code Code, prefix string, v []schemas.Violation) error {
	out := violations(v)
	for i := range out {
		out[i].Pointer = prefix + out[i].Pointer
	}
	return &InvalidError{Refusal: Refuse(code, out[0].Pointer, out[0].Reason), Violations: out}
}

func violations(v []schemas.Violation) []Violation {
	out := make([]Violation, len(v))
	for i, x := range v {
		out[i] = Violation{Pointer: x.Pointer, Reason: x.Reason}
	}
	return out
}
