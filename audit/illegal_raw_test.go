package audit_test

import (
	"crypto"
	"encoding/base64"
	"encoding/json"
	"io"
	"math/big"
	"slices"
	"strings"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/storage"
)

// rawly is a log in which an operator has signed raw, and one with a JWS.
func (d *dishonest) rawly() {
	d.operator = d.AddRawOperator("default", "olga", "admin")
	d.Want(d.Do(d.byOlga()), intents.OK)
	d.Clock.Move(intents.Leeway)
}

// byOlga is an intent of the scene's operator.
func (d *dishonest) byOlga() routertest.Intent {
	return routertest.Intent{By: d.operator, User: "olga", Tenant: "default", Roles: []string{"admin"}, Type: "admin.put", Args: catalog.AdminPut{User: &catalog.User{UserID: "ben", Roles: []string{"user"}}}}
}

// swapped is a key that signs something else, or as something else, than requested.
type swapped struct {
	crypto.Signer
	message func([]byte) []byte
	sig     func([]byte) []byte
}

func (s swapped) Sign(r io.Reader, message []byte, opts crypto.SignerOpts) ([]byte, error) {
	if s.message != nil {
		message = s.message(message)
	}
	sig, err := s.Signer.Sign(r, message, opts)
	if s.sig != nil {
		sig = s.sig(sig)
	}
	return sig, err
}

// bySwapped accepts an intent of the scene's operator whose key does so.
func (d *dishonest) bySwapped(message, sig func([]byte) []byte) int64 {
	d.Helper()
	o := d.byOlga()
	o.By.Key = swapped{o.By.Key, message, sig}
	return d.accepted(o)
}

// plusL adds the group order to S: the same signature in another spelling.
func plusL(sig []byte) []byte {
	l, _ := new(big.Int).SetString("7237005577332262213973186563042994240857116359379907606001950938285454250989", 10)
	s := slices.Clone(sig[32:])
	slices.Reverse(s)
	s = l.Add(l, new(big.Int).SetBytes(s)).FillBytes(make([]byte, 32))
	slices.Reverse(s)
	return slices.Concat(sig[:32], s)
}

// naming writes an intent of the scene's operator that names another key into the record.
func (d *dishonest) naming(kid string) int64 {
	d.Helper()
	position := d.accepted(d.byOlga())
	r := d.records[position]
	s, err := intents.ReadSigned(r.Parts[storage.PartEnvelope])
	d.Must(err)
	dec, err := intents.ReadDecision(r.Parts[storage.PartDecision])
	d.Must(err)
	s.Payload = strings.Replace(s.Payload, d.operator.KID, kid, 1)
	sig, err := d.operator.Key.Sign(nil, []byte(s.Payload), crypto.Hash(0))
	d.Must(err)
	s.Sig = "ed25519:" + base64.StdEncoding.EncodeToString(sig)
	dec.IntentID = intents.IntentID(s.Header, []byte(s.Payload))
	r.Parts[storage.PartEnvelope], err = json.Marshal(s)
	d.Must(err)
	r.Parts[storage.PartDecision], err = json.Marshal(dec)
	d.Must(err)
	d.records[position] = storage.NewRecord(r.Kind, r.At, r.Parts)
	d.records[position].Position = position
	return position
}

const rawRule = "every intent: its key has signed it, in the one form that the key's record says"

var rawMisdeeds = []misdeed{
	{"raw-by-jws-key", "raw", rawRule, "SIGNATURE_INVALID", func(d *dishonest) int64 {
		o := routertest.Intent{By: d.Operator, Type: "admin.put", Args: catalog.AdminPut{Tenant: "default", User: &catalog.User{UserID: "ben", Roles: []string{"user"}}}}
		o.By.Raw = true
		return d.accepted(o)
	}},
	{"jws-by-raw-key", "raw", rawRule, "SIGNATURE_INVALID", func(d *dishonest) int64 {
		o := d.byOlga()
		o.By.Raw = false
		return d.accepted(o)
	}},
	{"raw-over-other-bytes", "raw", rawRule, "SIGNATURE_INVALID", func(d *dishonest) int64 {
		return d.bySwapped(func(b []byte) []byte { return append(slices.Clone(b), ' ') }, nil)
	}},
	{"raw-plus-l", "raw", rawRule, "SIGNATURE_INVALID", func(d *dishonest) int64 { return d.bySwapped(nil, plusL) }},
	{"kid-of-another", "raw", rawRule, "SIGNATURE_INVALID", func(d *dishonest) int64 { return d.naming(d.Operator.KID) }},
	{"raw-key-revoked", "raw", "every intent: its key was not revoked", "KEY_REVOKED", func(d *dishonest) int64 {
		d.accepted(d.nextKeySet(func(s *intents.KeySet) { s.Keys[len(s.Keys)-1].Revoked = true }))
		return d.accepted(d.byOlga())
	}},
	{"raw-key-of-gateway", "raw", "key.put: each of its keys is one that a verifier admits", "raw is for operator keys", func(d *dishonest) int64 {
		o := d.nextKeySet(func(*intents.KeySet) {})
		o.Args = catalog.KeyPut{KeySet: d.signedSet(func(s *intents.KeySet) {
			for i := range s.Keys {
				s.Keys[i].Raw = s.Keys[i].Raw || s.Keys[i].Role == intents.RoleGateway
			}
		})}
		return d.accepted(o)
	}},
}

// signedSet is the next key set, changed, which only the root has checked.
func (d *dishonest) signedSet(change func(*intents.KeySet)) string {
	d.Helper()
	jwks := d.Dir.JWKS()
	set := intents.KeySet{Version: jwks.Version + 1, Prev: intents.Digest([]byte(jwks.KeySet)), Keys: slices.Clone(jwks.Keys)}
	change(&set)
	token, err := intents.SignCompact(d.Root, intents.TypKeySet, set)
	d.Must(err)
	return token
}
