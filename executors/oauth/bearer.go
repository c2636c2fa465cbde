package oauth

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"aob.dev/writ/executors/mcp"
)

// bearer sends requests with a token. A request that the server refuses for its token is sent once
// more with another one.
type bearer struct {
	next  http.RoundTripper
	token func(ctx context.Context, spent string) (string, error) // not spent, which was refused

	mu   sync.Mutex
	sent []string // the newest tokens
}

// tokensHidden is how many tokens of a client are removed from texts of its server.
const tokensHidden = 4

// RoundTrip implements http.RoundTripper.
func (b *bearer) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		var err error
		if body, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
		_ = req.Body.Close()
	}
	first, err := b.token(req.Context(), "")
	if err != nil {
		return nil, err
	}
	resp, err := b.send(req, body, first)
	if err != nil || resp.StatusCode != http.StatusUnauthorized {
		return resp, err
	}
	_ = resp.Body.Close()
	second, err := b.token(req.Context(), first)
	if err != nil {
		return nil, err
	}
	resp, err = b.send(req, body, second)
	if err == nil && resp.StatusCode == http.StatusUnauthorized {
		_ = resp.Body.Close()
		return nil, &mcp.Error{Kind: mcp.ErrRefused, Reason: "it refuses a new token, too (401)", Undelivered: true}
	}
	return resp, err
}

func (b *bearer) send(req *http.Request, body []byte, token string) (*http.Response, error) {
	b.remember(token)
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "Bearer "+token)
	if req.Body != nil {
		req.Body = io.NopCloser(bytes.NewReader(body))
	}
	return b.next.RoundTrip(req)
}

func (b *bearer) remember(token string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !slices.Contains(b.sent, token) {
		b.sent = append(b.sent, token)
		b.sent = b.sent[max(0, len(b.sent)-tokensHidden):]
	}
}

// hide removes the tokens from a text.
func (b *bearer) hide(text string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, token := range b.sent {
		text = strings.ReplaceAll(text, token, "(secret)")
	}
	return text
}
