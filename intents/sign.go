package intents

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Sign signs an intent. It returns the envelope with sig, in canonical form, ready to
// submit, and its intent_id. The body is validated as a router would. actor.kid is set
// if the signature is raw or the body names one.
func Sign(key Signer, b Body) (signed []byte, id string, err error) {
	key = key.Now()
	if key.Raw || b.Actor.KID != "" {
		b.Actor.KID = key.KID
	}
	payload, err := marshalCanonical(b)
	if err != nil {
		return nil, "", fmt.Errorf("sign: %w", err)
	}
	var header, sig string
	if key.Raw {
		sig, err = signRaw(key, payload)
	} else {
		var input []byte
		input, sig, err = sign(key, TypIntent, payload)
		header = headerOf(input)
	}
	if err != nil {
		return nil, "", err
	}
	u, err := newUnverified(payload, header, sig)
	if err != nil {
		return nil, "", err
	}
	return u.Bytes(), u.id, nil
}

// Bytes is the envelope as submitted, canonical, sig included.
func (u *Unverified) Bytes() []byte {
	// Only these members of an envelope follow sig.
	behind := `,"version":"` + u.body.Version + `"}`
	if u.body.TraceID != "" {
		trace, _ := marshalCanonical(u.body.TraceID) // a string of a canonical text
		behind = `,"trace_id":` + string(trace) + behind
	}
	at := len(u.canonical) - len(behind)
	sig := `,"sig":"` + sigOf(u.header, u.sig) + `"`
	return slices.Concat(u.canonical[:at], []byte(sig), u.canonical[at:])
}

// FormatTime is how issued_at is written: RFC 3339, UTC, milliseconds.
func FormatTime(t time.Time) string { return t.UTC().Format(timeFormat) }

const timeFormat = "2006-01-02T15:04:05.000Z"

// SignPoP proves possession of a task key: its signature over the other
// arguments of a step intent, as a detached JWS (header..signature).
func SignPoP(key Signer, args any) (string, error) {
	payload, err := marshalCanonical(args)
	if err != nil {
		return "", err
	}
	input, sig, err := sign(key, TypPoP, payload)
	if err != nil {
		return "", err
	}
	return headerOf(input) + ".." + sig, nil
}

// VerifyPoP checks a proof of possession over args with the key it introduces.
func VerifyPoP(pop string, key Key, args any) error {
	payload, err := marshalCanonical(args)
	if err != nil {
		return err
	}
	header, encoded, ok := strings.Cut(pop, "..")
	if !ok {
		return Refuse(SignatureInvalid, "/intent/args/pop", "proof of possession must be a detached compact JWS")
	}
	kid, err := parseHeader(header, TypPoP)
	if err != nil || kid != key.KID {
		return Refuse(SignatureInvalid, "/intent/args/pop", "proof of possession is not by the key that the step introduces")
	}
	sig, err := b64.DecodeString(encoded)
	if err != nil || !oneSpelling(encoded) || !key.verifies(signingInput(header, payload), sig) {
		return Refuse(SignatureInvalid, "/intent/args/pop", "proof of possession does not match")
	}
	return nil
}
