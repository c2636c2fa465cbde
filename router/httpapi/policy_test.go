package httpapi_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/policies"
)

// TestPolicy: digest, revision and time, for the bearer of a grant.
func TestPolicy(t *testing.T) {
	e := open(t)
	refused(t, e.do(http.MethodGet, "/v1/policy", nil), intents.Unauthorized)
	type answer struct {
		Digest, Since     string
		Revision, Refused int64
	}
	get := func() answer {
		return decoded[answer](t, e.do(http.MethodGet, "/v1/policy", nil, e.bearer("ana", "default", "user")...))
	}
	if got := get(); got.Digest != e.Policy.Engine().Digest() || got.Revision != 0 || got.Refused != 0 {
		t.Errorf("%+v", got)
	}
	s := policies.Embedded()
	s["more.rego"] = []byte("package more\n")
	tree := policies.Tree{Source: s, Revision: 3}
	unproved := errors.New("unproved")
	if _, err := e.Policy.ReplaceTree(t.Context(), tree, func(context.Context, *policies.Engine) error { return unproved }); !errors.Is(err, unproved) {
		t.Fatal(err)
	}
	before := time.Now().Add(-time.Second)
	if _, err := e.Policy.ReplaceTree(t.Context(), tree, func(context.Context, *policies.Engine) error { return nil }); err != nil {
		t.Fatal(err)
	}
	got := get()
	since, err := time.Parse(time.RFC3339, got.Since)
	if err != nil || since.Before(before.Truncate(time.Second)) || got.Digest != s.Digest() || got.Revision != 3 || got.Refused != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}
