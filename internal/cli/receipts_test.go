package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aob.dev/writ/intents"
)

// A receipt holds for the log of the keys, signed by a router, about the intent.
func TestReceiptVerify(t *testing.T) {
	signer := func(role intents.Role) intents.Signer {
		s, err := intents.GenerateSigner(role)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	router, manager, stranger := signer(intents.RoleRouter), signer(intents.RoleManager), signer(intents.RoleRouter)
	jwks := intents.JWKS{Origin: "writ/here", Keys: []intents.JWK{router.VerificationKey().ToJWK(), manager.VerificationKey().ToJWK()}}
	raw, err := json.Marshal(jwks)
	if err != nil {
		t.Fatal(err)
	}
	keys := filepath.Join(t.TempDir(), "jwks.json")
	if err := os.WriteFile(keys, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	issue := func(by intents.Signer, origin string) string {
		token, err := intents.IssueReceipt(by, intents.Receipt{
			Code: intents.OK, IntentID: intents.Digest([]byte("1")), Issuer: origin, PolicyDigest: intents.Digest([]byte("2")),
			Position: 7, RecordDigest: intents.Digest([]byte("3")), WithinSec: intents.PromiseSeconds,
		})
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	good := issue(router, "writ/here")
	for name, x := range map[string]struct {
		in, out string
		code    int
		args    []string
	}{
		"good":            {good + "\n", "valid: intent " + intents.Digest([]byte("1")) + " ended OK, position 7 of writ/here; no proof came along that this is in the log (writ audit prove)\n", ExitOK, nil},
		"in an answer":    {`{"code":"OK","receipt":"` + good + `"}`, "valid: ", ExitOK, nil},
		"of the intent":   {good, "valid: ", ExitOK, []string{"--intent", intents.Digest([]byte("1"))}},
		"of another":      {good, "SIGNATURE_INVALID: the receipt is about another intent\n", ExitNo, []string{"--intent", intents.Digest(nil)}},
		"of another log":  {issue(router, "writ/there"), "SIGNATURE_INVALID: the receipt and the keys are of different logs", ExitNo, nil},
		"of a manager":    {issue(manager, "writ/here"), "KEY_ROLE: ", ExitNo, nil},
		"of nobody known": {issue(stranger, "writ/here"), "KEY_UNKNOWN: ", ExitNo, nil},
		"spoiled":         {good[:len(good)-4] + "AAAA", "SIGNATURE_INVALID: ", ExitNo, nil},
		"no receipt":      {"hello", "", ExitNo, nil},
		"no JSON":         {"{", "", ExitMalformed, nil},
		"no member":       {"{}", "", ExitMalformed, nil},
	} {
		got := call{args: append([]string{"intent", "receipt", "verify", "--keys", keys}, x.args...), stdin: x.in}.run(t.Context())
		if got.code != x.code || !strings.HasPrefix(got.out, x.out) {
			t.Errorf("%s: exit %d, stdout %q, stderr %q", name, got.code, got.out, got.err)
		}
	}
}
