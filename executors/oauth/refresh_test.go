package oauth_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"aob.dev/writ/executors/mcp"
	"aob.dev/writ/intents"
	"aob.dev/writ/storage"
)

// TestRefresh: tokens that end are refreshed once, whoever calls; what the issuer has revoked is over.
func TestRefresh(t *testing.T) {
	b := open(t, mcp.OAuth{Mode: mcp.AuthUser})
	b.connect("ana", "ana@notes", b.link())
	pins := b.pins()
	b.says(b.call("ana", "note", `{}`, pins), "ana@notes")
	b.issuer.Expire()
	b.says(b.call("ana", "note", `{}`, pins), "ana@notes") // refused first, and sent again
	b.advance(2 * time.Hour)
	var calls sync.WaitGroup
	for range 4 {
		calls.Go(func() {
			if _, err := b.registry.Skills(t.Context(), who("ana")); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	if n := b.issuer.Asked("refresh_token"); n != 2 {
		t.Errorf("refreshed %d times", n)
	}
	for _, secret := range b.issuer.Issued() {
		b.issuer.Revoke(secret)
	}
	b.refused(b.call("ana", "note", `{}`, pins))
	b.connect("ana", "ana@notes", b.link())
	b.says(b.call("ana", "note", `{}`, pins), "ana@notes")
	b.hidden()
}

// dying is a store whose process dies when it has written some times.
type dying struct {
	storage.Documents
	left atomic.Int64
}

func (d *dying) Swap(ctx context.Context, tenant, index string, expected int64, doc storage.Document) error {
	if d.left.Add(-1) < 0 {
		return storage.ErrUnavailable
	}
	return d.Documents.Swap(ctx, tenant, index, expected, doc)
}

// TestRefreshDeath: a process dies when the authorization server has replaced the tokens, and before they are
// stored. The next one asks once with the old ones, and then the user to connect again.
func TestRefreshDeath(t *testing.T) {
	set := mcp.OAuth{Mode: mcp.AuthUser}
	b := open(t, set)
	b.connect("ana", "ana@notes", b.link())
	pins := b.pins()
	living := b.docs
	dies := &dying{Documents: living}
	dies.left.Store(1) // the claim
	b.docs = dies
	b.start(set)
	b.issuer.Expire()
	if r := b.call("ana", "note", `{}`, pins); r.Code == intents.OK || b.issuer.Asked("refresh_token") != 1 {
		t.Fatalf("%s %s after %d refreshes", r.Code, r.Result, b.issuer.Asked("refresh_token"))
	}
	b.docs = living
	b.start(set)
	b.advance(time.Minute) // the claim of the dead process lapses
	for range 3 {
		b.refused(b.call("ana", "note", `{}`, pins))
	}
	if n := b.issuer.Asked("refresh_token"); n != 2 {
		t.Errorf("refreshed %d times", n)
	}
	b.connect("ana", "ana@notes", b.link())
	b.says(b.call("ana", "note", `{}`, pins), "ana@notes")
	b.hidden()
}

// TestRefreshRefused: whatever the authorization server answers to a refresh, the user learns to connect again,
// or that it does not answer now; then the connection stays.
func TestRefreshRefused(t *testing.T) {
	for _, tt := range []struct {
		status  int
		body    string
		connect bool // is asked for
		over    bool // the tokens are not good any more
	}{
		{400, `{"error":"invalid_grant"}`, true, true},
		{200, `{"error":"bad_refresh_token"}`, true, true},
		{400, `{"error":"invalid_request"}`, true, false},
		{401, `{"error":"invalid_client"}`, true, false},
		{403, `<html>`, true, false},
		{400, ``, true, false},
		{500, `secret words`, false, false},
		{503, `{"error":"temporarily_unavailable"}`, false, false},
		{429, ``, false, false},
		{200, `{}`, false, false},
	} {
		t.Run(fmt.Sprint(tt.status, tt.body), func(t *testing.T) {
			b := open(t, mcp.OAuth{Mode: mcp.AuthUser})
			b.connect("ana", "ana@notes", b.link())
			pins := b.pins()
			b.issuer.Expire()
			b.issuer.Answers(tt.status, tt.body)
			for range 2 {
				switch r := b.call("ana", "note", `{}`, pins); {
				case tt.connect:
					b.refused(r)
				case r.Code == intents.OK || strings.Contains(r.Reason, "writ skill connect") || strings.Contains(r.Reason, "secret"):
					t.Errorf("%s %s", r.Code, r.Reason)
				}
			}
			b.issuer.Answers(0, "")
			if r := b.call("ana", "note", `{}`, pins); tt.over {
				b.refused(r)
			} else {
				b.says(r, "ana@notes")
			}
		})
	}
}
