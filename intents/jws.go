package intents

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/go-jose/go-jose/v4"
)

// Media types of the tokens, the "typ" of their protected headers. A signature
// over one can never pass as another.
const (
	TypIntent  = "writ-intent+jws"
	TypGrant   = "writ-grant+jws"
	TypTicket  = "writ-ticket+jws"
	TypReceipt = "writ-receipt+jws"
	TypKeySet  = "writ-keyset+jws"
	TypGenesis = "writ-genesis+jws"
	TypPoP     = "writ-pop+jws" // a task key's proof of possession
	// TypSnapshot is what a router knows of its own log, for its next start.
	TypSnapshot = "writ-snapshot+jws"
)

var b64 = base64.RawURLEncoding.Strict()

// protectedHeader is the one legal spelling of a protected header: the JCS
// bytes of exactly alg, kid and typ.
func protectedHeader(typ, kid string) string {
	return `{"alg":"EdDSA","kid":"` + kid + `","typ":"` + typ + `"}`
}

// parseHeader takes the kid out of an encoded protected header, refusing every
// other member, spelling and algorithm.
func parseHeader(encoded, typ string) (kid string, err error) {
	var room [128]byte // more than the longest legal one takes
	raw, err := b64.AppendDecode(room[:0], []byte(encoded))
	if err != nil || strings.ContainsAny(encoded, "\r\n") { // the decoder skips line ends
		return "", Refuse(SignatureInvalid, "/sig", "protected header is not base64url without padding")
	}
	s, ok := strings.CutPrefix(string(raw), `{"alg":"EdDSA","kid":"`)
	if ok {
		kid, ok = strings.CutSuffix(s, `","typ":"`+typ+`"}`)
	}
	if !ok || !validKID(kid) {
		return "", Refuse(SignatureInvalid, "/sig", "protected header must be the canonical JSON of exactly alg EdDSA, kid and typ "+typ)
	}
	return kid, nil
}

// validKID: an RFC 7638 thumbprint, 43 base64url characters.
func validKID(kid string) bool {
	if len(kid) != 43 {
		return false
	}
	return oneSpelling(kid)
}

// oneSpelling: base64url as it is encoded. The decoder skips line ends, and a
// lenient one ignores unused bits: either would give one token many spellings.
func oneSpelling(encoded string) bool {
	room := rooms.Get().(*[]byte) //nolint:forcetypeassert // New makes no other
	defer rooms.Put(room)
	var err error
	*room, err = b64.AppendDecode((*room)[:0], []byte(encoded))
	return err == nil && !strings.ContainsAny(encoded, "\r\n")
}

// signingInput is what is signed (RFC 7515 §5.1).
func signingInput(header string, payload []byte) []byte {
	return appendSigningInput(make([]byte, 0, len(header)+1+b64.EncodedLen(len(payload))+1+signatureText), header, payload) // and room for a signature
}

func appendSigningInput(b []byte, header string, payload []byte) []byte {
	return b64.AppendEncode(append(append(b, header...), '.'), payload)
}

// sign returns what is signed for a payload, which begins with the protected header, and the signature.
func sign(key Signer, typ string, payload []byte) (input []byte, sig string, err error) {
	key = key.Now() // once: header and signature are of the same key
	if key.Raw {
		return nil, "", fmt.Errorf("sign %s: the key %s makes raw signatures of envelopes, and signs nothing else", typ, key.KID)
	}
	input = signingInput(b64.EncodeToString([]byte(protectedHeader(typ, key.KID))), payload)
	raw, err := key.Key.Sign(rand.Reader, input, crypto.Hash(0))
	if err != nil {
		return nil, "", fmt.Errorf("sign %s: %w", typ, err)
	}
	if len(raw) != ed25519.SignatureSize {
		return nil, "", fmt.Errorf("sign %s: not an Ed25519 signer", typ)
	}
	return input, b64.EncodeToString(raw), nil
}

// headerOf is the encoded protected header of what is signed.
func headerOf(input []byte) string {
	header, _, _ := bytes.Cut(input, []byte("."))
	return string(header)
}

// SignCompact makes a compact JWS over the RFC 8785 bytes of claims.
func SignCompact(key Signer, typ string, claims any) (string, error) {
	payload, err := marshalCanonical(claims)
	if err != nil {
		return "", err
	}
	input, sig, err := sign(key, typ, payload)
	if err != nil {
		return "", err
	}
	return string(append(append(input, '.'), sig...)), nil
}

// OpenCompact verifies a compact JWS with the key that keys choose for its kid
// and decodes its claims, refusing members that are unknown or missing and payloads
// that are not canonical. go-jose verifies; the algorithm list has one entry and the key is ours.
func OpenCompact(token, typ string, keys Keys, claims any) (Key, error) {
	encoded, rest, ok := strings.Cut(token, ".")
	if !ok || strings.Count(rest, ".") != 1 || len(token) > maxToken {
		return Key{}, Refuse(SignatureInvalid, "", "not a compact JWS")
	}
	kid, err := parseHeader(encoded, typ)
	if err != nil {
		return Key{}, err
	}
	if payload, sig, _ := strings.Cut(rest, "."); !oneSpelling(payload) || !oneSpelling(sig) {
		return Key{}, Refuse(SignatureInvalid, "", "not base64url without padding")
	}
	key, err := keys.Key(kid)
	if err != nil {
		return Key{}, err
	}
	parsed, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{jose.EdDSA})
	if err != nil {
		return Key{}, Refuse(SignatureInvalid, "", "not a compact JWS")
	}
	payload, err := parsed.Verify(joseVerifier{key})
	if err != nil {
		return Key{}, Refuse(SignatureInvalid, "", "signature does not match")
	}
	if err := json.Unmarshal(payload, claims); err != nil {
		return Key{}, Refuse(SignatureInvalid, "", "claims: "+err.Error())
	}
	// An unknown member is missing here, so this refuses it, too.
	if again, err := marshalCanonical(claims); err != nil || !bytes.Equal(again, payload) {
		return Key{}, Refuse(SignatureInvalid, "", "claims are not canonical: they are spelt otherwise, a name is unknown or differs in case, or a member is missing, null or empty")
	}
	return key, nil
}

// joseVerifier is the one key that go-jose verifies with.
type joseVerifier struct{ key Key }

var _ jose.OpaqueVerifier = joseVerifier{}

// VerifyPayload implements jose.OpaqueVerifier. The payload is the signing input.
func (v joseVerifier) VerifyPayload(payload, signature []byte, alg jose.SignatureAlgorithm) error {
	if alg != jose.EdDSA {
		return jose.ErrUnsupportedAlgorithm
	}
	if !v.key.verifies(payload, signature) {
		return jose.ErrCryptoFailure
	}
	return nil
}

// maxToken bounds compact tokens: a ticket with inline inputs is the largest.
const maxToken = 512 << 10

// marshalCanonical returns the RFC 8785 bytes of v and refuses what they would change.
func marshalCanonical(v any) ([]byte, error) {
	raw, err := MarshalPlain(v)
	if err != nil {
		return nil, err
	}
	return Canonical(raw)
}

// MarshalPlain leaves <, > and & as they are, as RFC 8785 does: raw JSON inside v retains
// its bytes, and what was signed can still be verified.
func MarshalPlain(v any) ([]byte, error) {
	buf := texts.Get().(*bytes.Buffer) //nolint:forcetypeassert // New makes no other
	defer texts.Put(buf)
	buf.Reset()
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.Clone(bytes.TrimSuffix(buf.Bytes(), []byte("\n"))), nil
}

// texts are buffers for JSON that is being written.
var texts = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// PeekClaims reads the claims of a compact JWS without verifying anything: only
// to learn which key a token that names its own key (the genesis) claims.
func PeekClaims(token string, claims any) error {
	_, rest, _ := strings.Cut(token, ".")
	encoded, _, ok := strings.Cut(rest, ".")
	if !ok || len(token) > maxToken {
		return Refuse(SignatureInvalid, "", "not a compact JWS")
	}
	raw, err := b64.DecodeString(encoded)
	if err != nil {
		return Refuse(SignatureInvalid, "", "not a compact JWS")
	}
	return json.Unmarshal(raw, claims)
}
