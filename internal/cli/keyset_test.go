package cli

import (
	"testing"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/keydir"
)

// A rotation replaces keys of the same form, and a key for raw signatures is none that a
// role can do without the others for.
func TestRawKeysBesideOthers(t *testing.T) {
	key := func(kid string, raw bool) intents.JWK {
		return intents.JWK{KID: kid, Role: intents.RoleOperator, Subject: keydir.LocalSubject, Tenant: keydir.LocalTenant, Raw: raw}
	}
	set := []intents.JWK{key("jws", false), key("raw", true)}
	if _, err := revoked(set, "jws"); err == nil {
		t.Error("the last key of a role that signs a JWS is revoked")
	}
	if after, err := revoked([]intents.JWK{key("jws", false), key("raw", true)}, "raw"); err != nil || !after[1].Revoked {
		t.Errorf("a raw key stays: %v", err)
	}
	after := replaced([]intents.JWK{key("jws", false), key("raw", true)}, key("next", false), time.Now())
	if after[0].NotAfter == "" || after[1].NotAfter != "" {
		t.Errorf("%+v", after)
	}
}
