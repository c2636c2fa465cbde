// Package intents is the signed intent: how an intent and its tokens (grant,
// ticket, receipt, key set) are written, signed and verified.
//
// An envelope travels as one JSON object:
//
//	{"version":"1.0","intent":{"type":"skill.call","args":{…}},"actor":{…},
//	 "constraints":{…},"context":{…},"trace_id":"…","sig":"<header>..<signature>"}
//
// sig is a detached compact JWS (RFC 7515 appendix F) over the RFC 8785 bytes
// of the envelope without sig and without transient, which holds texts whose salted digests the
// arguments sign ([Transient]). Its protected header is exactly the canonical
// JSON of alg (EdDSA), kid and typ (writ-intent+jws). For a key whose record says
// so, sig is ed25519:<base64> over the same bytes instead, and actor.kid names it.
//
// [Parse] reads bytes and trusts nothing: it returns an [Unverified]. Only
// [Unverified.Verify] returns an [Envelope], so the compiler keeps unverified
// input out of the router. What is signed is what is executed: an Envelope
// carries the canonical bytes, and nothing re-reads the received text.
//
// Signatures are verified by crypto/ed25519, once per submission of an intent:
// with precomputed tables verdicts could depend on a process's history.
package intents

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"sync"
	"time"
)

// Version of the envelope.
const Version = "1.0"

// Spec is the intent itself. Members are in the order of RFC 8785, here and
// below, so that encoding an intent gives its canonical bytes at once.
type Spec struct {
	Args json.RawMessage `json:"args"`
	Type string          `json:"type"`
}

// Actor is for whom; the router believes only the grant.
type Actor struct {
	Grant  string   `json:"grant,omitempty"`
	KID    string   `json:"kid,omitempty"` // the key that signs; a raw signature needs it
	Roles  []string `json:"roles,omitempty"`
	Tenant string   `json:"tenant"`
	UserID string   `json:"user_id"`
}

// Constraints bound the acceptance of the intent, not its run.
type Constraints struct {
	Audience       string   `json:"audience"`               // log origin
	Capabilities   []string `json:"capabilities,omitempty"` // declared; a ceiling
	IdempotencyKey string   `json:"idempotency_key"`
	IssuedAt       string   `json:"issued_at"` // RFC 3339 UTC with milliseconds
	TTLSec         int      `json:"ttl_sec"`   // 1..300
}

// Context is the place of the intent in the work. All members are optional.
type Context struct {
	Agent      *Agent            `json:"agent,omitempty"`
	Ask        string            `json:"ask,omitempty"`   // path of the call that asked the agent; empty: the step's own task
	Call       string            `json:"call,omitempty"`  // "<reply>.<index>": which call of the agent it is
	Cause      string            `json:"cause,omitempty"` // intent_id that led here
	Labels     map[string]string `json:"labels,omitempty"`
	NodeID     string            `json:"node_id,omitempty"`
	Occurrence int               `json:"occurrence,omitempty"`
	PlanID     string            `json:"plan_id,omitempty"`
	Revision   int               `json:"revision,omitempty"`
	RunID      string            `json:"run_id,omitempty"`
	SessionID  string            `json:"session_id,omitempty"`
	Step       int               `json:"step,omitempty"`
	TaskID     string            `json:"task_id,omitempty"`
	Tool       string            `json:"tool,omitempty"` // of the call, as the model knows it; for people
	TurnID     string            `json:"turn_id,omitempty"`
}

// Read reads a context without labels and agent.
func (x *Context) Read(c *Cursor) {
	c.Members("session_id", &x.SessionID, "turn_id", &x.TurnID, "plan_id", &x.PlanID, "revision", &x.Revision, "step", &x.Step,
		"task_id", &x.TaskID, "run_id", &x.RunID, "node_id", &x.NodeID, "occurrence", &x.Occurrence, "ask", &x.Ask, "call", &x.Call,
		"tool", &x.Tool, "cause", &x.Cause)
}

// Agent names the definition that the signer ran.
type Agent struct {
	Digest string `json:"digest"`
	Name   string `json:"name"`
}

// Body is the envelope without sig: the signed content.
type Body struct {
	Actor       Actor       `json:"actor"`
	Constraints Constraints `json:"constraints"`
	Context     *Context    `json:"context,omitempty"`
	Intent      Spec        `json:"intent"`
	TraceID     string      `json:"trace_id,omitempty"`
	Version     string      `json:"version"`
}

// Unverified is a well-formed envelope that has not been verified.
type Unverified struct {
	body      Body
	args      any    // the tree of the arguments
	canonical []byte // RFC 8785 bytes without sig: the JWS payload
	header    string // encoded protected header; empty: sig is raw
	sig       string // encoded signature
	input     []byte // what is signed: the JWS signing input, or canonical itself
	signature [64]byte
	issued    time.Time
	kid       string
	id        string
	transient Transient // as received, not compared with the signed digests
}

// ID is the intent_id that the intent would have.
func (u *Unverified) ID() string { return u.id }

// KID names the key that the envelope claims.
func (u *Unverified) KID() string { return u.kid }

// Body is the unverified content of the envelope. Do not modify.
func (u *Unverified) Body() Body { return u.body }

// TraceID of the intent, for answers about it.
func (u *Unverified) TraceID() string { return u.body.TraceID }

// Envelope is a verified envelope. It is immutable.
type Envelope struct {
	u         *Unverified
	signer    Key
	granted   verifiedGrant // none for operators
	principal Principal
	args      any // the tree of the arguments
}

// ID is the intent_id: it names content and signer.
func (e *Envelope) ID() string { return e.u.id }

// Type of the intent.
func (e *Envelope) Type() string { return e.u.body.Intent.Type }

// Args are the canonical bytes of the arguments. Do not modify.
func (e *Envelope) Args() json.RawMessage { return e.u.body.Intent.Args }

// Signer is the key that verified, as it was in force.
func (e *Envelope) Signer() Key { return e.signer }

// Principal is whom the intent acts for: from the grant, or the operator's key.
// An operator's roles are empty here; the directory knows them.
func (e *Envelope) Principal() Principal { return e.principal }

// DecodedArgs are the arguments as encoding/json reads them with UseNumber. Do not
// modify. It is nil for an envelope that was not verified.
func (e *Envelope) DecodedArgs() any { return e.args }

// StringArg is a direct member of the arguments that is a string; else it is empty.
func (e *Envelope) StringArg(name string) string {
	var t taker
	return t.text(t.object(e.args)[name])
}

// StringsArg is a direct member of the arguments that is an array of strings; else it is nil.
func (e *Envelope) StringsArg(name string) []string {
	var t taker
	texts := t.texts(t.object(e.args)[name])
	if t.odd {
		return nil
	}
	return texts
}

// Claimed are the roles that the intent claims for its actor: never more than those
// of the grant. The directory checks what an operator claims. Do not modify.
func (e *Envelope) Claimed() []string { return e.u.body.Actor.Roles }

// Grant is the verified grant; nil for operators.
func (e *Envelope) Grant() *Grant { return e.granted.grant }

// GrantSigner is SignerOf the grant.
func (e *Envelope) GrantSigner() string {
	if e.granted.grant == nil {
		return SignerOf(e.GrantToken())
	}
	return e.granted.kid
}

// GrantToken is the grant as received.
func (e *Envelope) GrantToken() string { return e.u.body.Actor.Grant }

// Constraints of the intent.
func (e *Envelope) Constraints() Constraints { return e.u.body.Constraints }

// IssuedAt is constraints.issued_at.
func (e *Envelope) IssuedAt() time.Time { return e.u.issued }

// TTL is constraints.ttl_sec.
func (e *Envelope) TTL() time.Duration {
	return time.Duration(e.u.body.Constraints.TTLSec) * time.Second
}

// Context of the intent; never nil.
func (e *Envelope) Context() Context {
	if e.u.body.Context == nil {
		return Context{}
	}
	return *e.u.body.Context
}

// TraceOf is the trace of an intent without a trace_id.
func TraceOf(intentID string) string { return intentID[len("sha256:") : len("sha256:")+32] }

// TraceID of the intent, or one derived from its id: 32 hex digits.
func (e *Envelope) TraceID() string {
	if e.u.body.TraceID != "" {
		return e.u.body.TraceID
	}
	return e.u.id[len("sha256:") : len("sha256:")+32]
}

// Header is the encoded protected header, Canonical the signed payload and Sig
// the encoded signature: together they are the envelope. A raw one has no header.
func (e *Envelope) Header() string { return e.u.header }

// Canonical bytes of the envelope without sig. Do not modify.
func (e *Envelope) Canonical() []byte { return e.u.canonical }

// Sig is the encoded signature.
func (e *Envelope) Sig() string { return e.u.sig }

// Signed is the part "envelope" of a record: everything needed to verify again.
type Signed struct {
	Header  string `json:"header"`
	Payload string `json:"payload"` // canonical bytes; a string, since raw JSON inside JSON is respelt
	Sig     string `json:"sig"`
}

// Signed returns the envelope for the journal.
func (e *Envelope) Signed() Signed {
	return Signed{Header: e.u.header, Payload: string(e.u.canonical), Sig: e.u.sig}
}

// ReadSigned reads the part "envelope" of a record. Most are canonical; encoding/json escapes
// angle brackets and ampersands. Its strings are parts of one copy.
func ReadSigned(part []byte) (s Signed, err error) {
	c := readPlain(part)
	c.s.apart = false
	if c.Members("header", &s.Header, "payload", &s.Payload, "sig", &s.Sig); c.Done() {
		return s, nil
	}
	s = Signed{}
	err = json.Unmarshal(part, &s)
	return s, err
}

// Body of a recorded envelope, which was validated before it was recorded.
// Retaining one of its strings, or the arguments, retains nothing else.
func (s Signed) Body() (Body, error) {
	return readApart(s.Payload)
}

// Open parses a recorded envelope again.
func (s Signed) Open() (*Unverified, error) {
	c, ok := scanText(s.Payload, true)
	if !ok {
		return nil, notCanonical()
	}
	c.bytes = []byte(s.Payload)
	return assemble(c, s.Header, s.Sig)
}

// IntentID computes the intent_id from the encoded header and canonical payload. An intent
// with a raw signature has no header, and names its key in the payload.
func IntentID(header string, canonical []byte) string {
	if header == "" {
		return Digest(canonical)
	}
	room := rooms.Get().(*[]byte) //nolint:forcetypeassert // New makes no other
	defer rooms.Put(room)
	*room = appendSigningInput((*room)[:0], header, canonical)
	return Digest(*room)
}

// rooms are buffers for what is not retained.
var rooms = sync.Pool{New: func() any { return new([]byte) }}

// Digest is "sha256:" and the hex SHA-256 of b.
func Digest(b []byte) string {
	sum := sha256.Sum256(b)
	var text [len("sha256:") + 2*sha256.Size]byte
	copy(text[:], "sha256:")
	hex.Encode(text[len("sha256:"):], sum[:])
	return string(text[:])
}

var hexDigits = letters("0123456789abcdef")

// IsDigest reports whether s has the form of a Digest.
func IsDigest(s string) bool {
	digits, ok := strings.CutPrefix(s, "sha256:")
	return ok && hexDigits.spell(digits, 2*sha256.Size, 2*sha256.Size)
}

// AsRecorded returns a recorded intent whose key no longer verifies it, so that it
// can still be named and ended. It must not be carried out: it has no
// signer and no principal.
func (u *Unverified) AsRecorded() *Envelope { return &Envelope{u: u} }
