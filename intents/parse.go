package intents

import (
	"slices"
	"strings"
	"time"

	"aob.dev/writ/schemas"
)

// Limits of an envelope.
const (
	MaxSize  = 48 << 10 // bytes, received and canonical
	MaxDepth = 32       // the root is 1
)

// Parse reads a received envelope: strict I-JSON within the limits, the shape of
// schemas/envelope.schema.json, a well-formed sig. It verifies nothing, and does not compare
// transient texts with their digests. The error is a *Refusal with SCHEMA_INVALID,
// PAYLOAD_TOO_LARGE or SIGNATURE_INVALID. It retains nothing of raw.
func Parse(raw []byte) (*Unverified, error) {
	if len(raw) > MaxSize {
		return nil, Refuse(PayloadTooLarge, "", "intent has more than 49152 bytes")
	}
	c, err := canonicalize(raw, true)
	if err != nil {
		return nil, err
	}
	root, ok := c.tree.(map[string]any)
	if !ok {
		return nil, Refuse(SchemaInvalid, "", "intent is not a JSON object")
	}
	if c.sig.to == 0 {
		return nil, Refuse(SignatureInvalid, "/sig", "sig is missing: "+SigForms)
	}
	payload, sig := c.without()
	header, signature, err := cutSig(root["sig"], sig)
	if err != nil {
		return nil, err
	}
	var texts Transient
	if v, there := root["transient"]; there {
		if texts, err = readTransient(v); err != nil {
			return nil, err
		}
	}
	delete(root, "sig")
	delete(root, "transient")
	c.bytes = payload // args are at the same place, in front of sig
	u, err := assemble(c, header, signature)
	if err != nil {
		return nil, err
	}
	u.transient = texts
	return u, nil
}

// SigForms are the two forms of sig.
const SigForms = "<protected header>..<signature>, a detached compact JWS, or ed25519:<base64>"

// cutSig splits a detached compact JWS (RFC 7515 appendix F); a raw signature stays
// whole, without a header. written is the same as canonical JSON: in a well-formed one nothing is
// escaped.
func cutSig(sig any, written []byte) (header, signature string, err error) {
	text, ok := sig.(string)
	if !ok {
		return "", "", Refuse(SignatureInvalid, "/sig", "sig must be a string: "+SigForms)
	}
	escaped := len(written) != len(text)+len(`""`)
	if !escaped && strings.HasPrefix(text, RawPrefix) {
		return "", text, nil
	}
	if header, signature, ok = strings.Cut(text, ".."); !ok || escaped {
		return "", "", Refuse(SignatureInvalid, "/sig", "sig must be "+SigForms)
	}
	return header, signature, nil
}

// newUnverified checks a payload that has not been scanned yet.
func newUnverified(payload []byte, header, sig string) (*Unverified, error) {
	c, err := scanPayload(payload)
	if err != nil {
		return nil, err
	}
	return assemble(c, header, sig)
}

func scanPayload(payload []byte) (canonical, error) {
	c, ok := scan(payload, true)
	if !ok {
		return c, notCanonical()
	}
	return c, nil
}

func notCanonical() *Refusal {
	return Refuse(SchemaInvalid, "", "payload is not canonical (RFC 8785)")
}

// signatureText is the length of 64 bytes in base64url without padding.
const signatureText = 86

// assemble makes an envelope of a canonical payload and its signature parts.
func assemble(c canonical, header, sig string) (*Unverified, error) {
	payload := c.bytes
	if len(payload)+len(`"sig":"",`)+sigLen(header, sig) > MaxSize {
		return nil, Refuse(PayloadTooLarge, "", "intent has more than 49152 canonical bytes")
	}
	body, err := c.body()
	if err != nil {
		return nil, err
	}
	issued, err := time.Parse(time.RFC3339Nano, body.Constraints.IssuedAt)
	if err != nil {
		return nil, Refuse(SchemaInvalid, "/constraints/issued_at", "not an RFC 3339 time")
	}
	u := &Unverified{body: body, issued: issued, args: argsOf(c.tree), canonical: payload, header: header, sig: sig}
	if u.raw() {
		err = u.readRaw()
	} else {
		err = u.readJWS()
	}
	if err != nil {
		return nil, err
	}
	u.id = Digest(u.input)
	return u, nil
}

// readJWS reads header and signature of a detached JWS.
func (u *Unverified) readJWS() (err error) {
	if u.kid, err = parseHeader(u.header, TypIntent); err != nil {
		return err
	}
	if !u.decodeSignature() {
		return Refuse(SignatureInvalid, "/sig", "signature must be 64 bytes in base64url without padding")
	}
	if kid := u.body.Actor.KID; kid != "" && kid != u.kid {
		return Refuse(SignatureInvalid, "/actor/kid", "is not the kid of the protected header")
	}
	u.input = signingInput(u.header, u.canonical)
	return nil
}

// decodeSignature reads sig in its one spelling.
func (u *Unverified) decodeSignature() bool {
	var text [signatureText]byte
	if len(u.sig) != len(text) {
		return false
	}
	copy(text[:], u.sig)
	n, err := b64.Decode(u.signature[:], text[:]) // line ends would leave it short
	return err == nil && n == len(u.signature)
}

// Invalid is the refusal of what breaks its schema, under a pointer prefix.
func Invalid(prefix string, v []schemas.Violation) *Refusal {
	v = slices.Clone(v)
	for i := range v {
		v[i].Pointer = prefix + v[i].Pointer
	}
	r := Refuse(SchemaInvalid, v[0].Pointer, v[0].Reason)
	r.Violations = v
	return r
}
