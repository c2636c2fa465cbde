package intents

import (
	"crypto/ed25519"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
)

// TestDetachedVerifiesWithJose: another implementation verifies our envelopes.
func TestDetachedVerifiesWithJose(t *testing.T) {
	_, _, u := testEnvelope(t)
	parsed, err := jose.ParseDetached(u.header+".."+u.sig, u.canonical, []jose.SignatureAlgorithm{jose.EdDSA})
	if err != nil {
		t.Fatal(err)
	}
	if err := parsed.DetachedVerify(u.canonical, vTask.Public()); err != nil {
		t.Error(err)
	}
	if err := parsed.DetachedVerify(append([]byte(" "), u.canonical...), vTask.Public()); err == nil {
		t.Error("another payload verifies")
	}
	if got := parsed.Signatures[0].Protected; got.KeyID != vTask.KID || got.ExtraHeaders[jose.HeaderType] != TypIntent {
		t.Errorf("protected header %+v", got)
	}
}

// TestJoseDetachedParses: what another implementation signs under our header is an envelope.
func TestJoseDetachedParses(t *testing.T) {
	payload, err := marshalCanonical(testBody())
	if err != nil {
		t.Fatal(err)
	}
	header := b64.EncodeToString([]byte(protectedHeader(TypIntent, vTask.KID)))
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: jose.JSONWebKey{Key: vTask.Key, KeyID: vTask.KID}}, (&jose.SignerOptions{}).WithType(TypIntent))
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	detached, err := signed.DetachedCompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	gotHeader, sig, _ := strings.Cut(detached, "..")
	if gotHeader != header {
		t.Fatalf("go-jose writes another header: %s", gotHeader)
	}
	u, err := newUnverified(payload, gotHeader, sig)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := u.Verify(testVerifier()); err != nil {
		t.Error(err)
	}
}

// TestRFC8037A4 is the example of RFC 8037 appendix A.4, made with our signing
// input; as a token of ours it is refused, for its header names no kid and typ.
func TestRFC8037A4(t *testing.T) {
	seed, err := b64.DecodeString("nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A")
	if err != nil {
		t.Fatal(err)
	}
	const want = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg"
	input := b64.EncodeToString([]byte(`{"alg":"EdDSA"}`)) + "." + b64.EncodeToString([]byte("Example of Ed25519 signing"))
	key := ed25519.NewKeyFromSeed(seed)
	if got := input + "." + b64.EncodeToString(ed25519.Sign(key, []byte(input))); got != want {
		t.Errorf("JWS %s, want %s", got, want)
	}
	if got := b64.EncodeToString(key.Public().(ed25519.PublicKey)); got != "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo" {
		t.Errorf("public key %s", got)
	}
	if _, err := OpenCompact(want, TypReceipt, ring(), &Receipt{}); CodeOf(err) != SignatureInvalid {
		t.Errorf("opened: %v", err)
	}
}
