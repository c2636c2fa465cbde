package embed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"aob.dev/writ/internal/egress"
)

// service is a path of a server of models, and how to ask it. No error contains text of
// the server, which may repeat what it was sent.
type service struct {
	url, key string
	client   *http.Client
}

// newService of a kind, which errors begin with. Nothing is sent yet.
func newService(kind, base, path, key, model string) (s service, err error) {
	u, err := url.Parse(base)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "":
		return s, errors.New(kind + ": the base URL must be an http or https URL without query and fragment")
	case model == "":
		return s, errors.New(kind + ": a model is required")
	}
	s = service{url: strings.TrimRight(base, "/") + path, key: key, client: egress.Client(egress.Transport(base))}
	s.client.Timeout = RequestTimeout
	return s, nil
}

// post sends one request. An answer of more than limit bytes is cut one byte behind it. after
// is the time after which the server wants the next request.
func (s service) post(ctx context.Context, question any, limit int64) (answer []byte, after time.Duration, err error) {
	body, err := json.Marshal(question)
	if err != nil {
		return nil, 0, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return nil, 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	if s.key != "" {
		req.Header.Set("Authorization", "Bearer "+s.key)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, 0, fmt.Errorf("%w: no answer", ErrUnavailable)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // so that the connection is used again
		return nil, egress.RetryAfter(resp.Header, time.Now()), refusal(resp.StatusCode)
	}
	answer, err = io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if err != nil {
		err = fmt.Errorf("%w: the answer broke off", ErrUnavailable)
	}
	return answer, 0, err
}

// refusal is the error of a status: ErrUnavailable where the request may work later.
func refusal(status int) error {
	if status == http.StatusTooManyRequests || status == http.StatusRequestTimeout || status >= 500 && status != http.StatusNotImplemented {
		return fmt.Errorf("%w: the service answers %d", ErrUnavailable, status)
	}
	return fmt.Errorf("embed: the service answers %d", status)
}
