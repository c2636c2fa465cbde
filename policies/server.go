package policies

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"aob.dev/writ/internal/egress"
)

// fetchTimeout bounds one answer of a bundle server.
const fetchTimeout = 10 * time.Second

// get asks an OPA bundle server for the bundle, unless it is the one that it
// gave before (ETag). Redirects are not followed: the token is for this address.
func (p Place) get(ctx context.Context, before fetched) (fetched, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.At, http.NoBody)
	if err != nil {
		return fetched{}, err
	}
	req.Header.Set("Prefer", "modes=snapshot")
	if p.Token != "" && !private(req.URL) {
		return fetched{}, fmt.Errorf("bundle server %s: a token goes over https, or to this machine: everybody on the way would read it", req.URL.Redacted())
	}
	if p.Token != "" {
		req.Header.Set("Authorization", "Bearer "+p.Token)
	}
	if before.etag != "" {
		req.Header.Set("If-None-Match", before.etag)
	}
	transport := egress.Transport(p.At)
	defer transport.CloseIdleConnections()
	resp, err := egress.Client(transport).Do(req)
	if err != nil {
		var at *url.Error
		if errors.As(err, &at) {
			err = at.Err // the address is named below, without the credentials that it may have
		}
		return fetched{}, fmt.Errorf("bundle server %s: %w", req.URL.Redacted(), err)
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusNotModified:
		if before.etag == "" {
			return fetched{}, fmt.Errorf("bundle server %s: 304 to a first question", req.URL.Redacted())
		}
		return before, nil
	case http.StatusOK:
	default:
		return fetched{}, fmt.Errorf("bundle server %s: %s", req.URL.Redacted(), resp.Status)
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxSource+1))
	if err == nil && len(raw) > maxSource {
		err = fmt.Errorf("more than %d bytes", maxSource)
	}
	if err != nil {
		return fetched{}, fmt.Errorf("bundle server %s: %w", req.URL.Redacted(), err)
	}
	tree, err := p.open(raw)
	return fetched{Tree: tree, etag: resp.Header.Get("ETag")}, err
}

// private says that nobody on the way can read what is sent there.
func private(u *url.URL) bool {
	host := u.Hostname()
	return u.Scheme == "https" || host == "localhost" || net.ParseIP(host).IsLoopback()
}
