package policies

import (
	"context"
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

// get asks an OPA bundle server for the bundle, unless it is unchanged (ETag). Redirects are not
// followed: the token is for this address.
func (p Place) get(ctx context.Context, before fetchResult) (fetchResult, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.At, http.NoBody)
	if err != nil {
		return fetchResult{}, err
	}
	req.Header.Set("Prefer", "modes=snapshot")
	if p.Token != "" && !private(req.URL) {
		return fetchResult{}, fmt.Errorf("bundle server %s: a token goes over https, or to this machine: everybody on the way would read it", req.URL.Redacted())
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
		return fetchResult{}, bundles(req.URL).Fault(err)
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusNotModified:
		if before.etag == "" {
			return fetchResult{}, fmt.Errorf("bundle server %s: 304 to a first question", req.URL.Redacted())
		}
		return before, nil
	case http.StatusOK:
	default:
		return fetchResult{}, bundles(req.URL).Fault(egress.Status(resp.StatusCode))
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxSource+1))
	if err == nil && len(raw) > maxSource {
		err = fmt.Errorf("more than %d bytes", maxSource)
	}
	if err != nil {
		return fetchResult{}, bundles(req.URL).Fault(err)
	}
	tree, err := p.open(raw)
	return fetchResult{Tree: tree, etag: resp.Header.Get("ETag")}, err
}

// bundles is the bundle server as errors describe it.
func bundles(at *url.URL) egress.Server {
	return egress.Server{
		Name: "bundle server " + at.Redacted(), Unaffected: "the policies that are in force stay in force, and a start without them fails",
		Address: "policies (--policies) or policy_extensions (--policy-extensions)", Secret: "policy_token (WRIT_POLICY_TOKEN)", Try: "writ doctor",
	}
}

// private reports whether what is sent to a URL is protected on the way.
func private(u *url.URL) bool {
	host := u.Hostname()
	return u.Scheme == "https" || host == "localhost" || net.ParseIP(host).IsLoopback()
}
