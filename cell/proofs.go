package cell

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/problem"
	"aob.dev/writ/router/httpapi"
	"aob.dev/writ/storage/ledger"
)

// inclusionPath is where a recorder proves a position.
const inclusionPath = "/ledger/inclusion/"

// NearProofs are those of the recorder in this process, as long as it is the cell's.
type NearProofs struct {
	// Ledger is open while this process is the recorder of the cell; nil: another one is.
	Ledger func() *ledger.Ledger
}

var _ httpapi.Ledger = NearProofs{}

// Handler implements httpapi.Ledger. The paths begin with /ledger.
func (p NearProofs) Handler() http.Handler { return p }

// ServeHTTP implements http.Handler.
func (p NearProofs) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l := p.Ledger()
	if l == nil {
		elsewhere.Write(w)
		return
	}
	position, ok := cutPosition(r.URL.Path)
	if !ok {
		http.StripPrefix("/ledger", l.Handler()).ServeHTTP(w, r)
		return
	}
	doc, published, err := l.Proof(r.Context(), position)
	switch {
	case err != nil:
		problem.FromError(err).Write(w)
	case !published:
		problem.New(intents.InFlight, "", "the record is in the next checkpoint").Write(w)
	default:
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(doc) //nolint:gosec // G705: our own JSON; an error: the client is gone
	}
}

// Proof implements httpapi.Ledger.
func (p NearProofs) Proof(ctx context.Context, position int64) (doc json.RawMessage, published bool, err error) {
	l := p.Ledger()
	if l == nil {
		return nil, false, elsewhere
	}
	return l.Proof(ctx, position)
}

var elsewhere = Unavailable("another process is the recorder of the cell")

func cutPosition(path string) (int64, bool) {
	if len(path) <= len(inclusionPath) || path[:len(inclusionPath)] != inclusionPath {
		return 0, false
	}
	position, err := strconv.ParseInt(path[len(inclusionPath):], 10, 64)
	return position, err == nil && position >= 0
}

// FarProofs are those of a recorder in another process.
type FarProofs struct {
	handler http.Handler
	client  *http.Client
}

// NewFarProofs reads from the recorders at some URLs.
func NewFarProofs(recorders []string, log *slog.Logger) (*FarProofs, error) {
	h, err := Forward(recorders, "recorder", "recorders", log)
	if err != nil {
		return nil, err
	}
	c, err := Client(recorders...)
	return &FarProofs{h, c}, err
}

var _ httpapi.Ledger = (*FarProofs)(nil)

// Handler implements httpapi.Ledger.
func (f *FarProofs) Handler() http.Handler { return f.handler }

// maxProof of a position, in bytes.
const maxProof = 1 << 20

// Proof implements httpapi.Ledger.
func (f *FarProofs) Proof(ctx context.Context, position int64) (doc json.RawMessage, published bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://recorder"+inclusionPath+strconv.FormatInt(position, 10), nil)
	if err != nil {
		return nil, false, err
	}
	res, err := f.client.Do(req)
	if err != nil {
		return nil, false, fmt.Errorf("recorder: %w", err)
	}
	defer func() { err = errors.Join(err, res.Body.Close()) }()
	switch res.StatusCode {
	case http.StatusOK:
		doc, err = io.ReadAll(io.LimitReader(res.Body, maxProof))
		return doc, err == nil, err
	case intents.InFlight.Info().Status:
		return nil, false, nil
	case http.StatusServiceUnavailable:
		return nil, false, Unavailable("no recorder proves anything now")
	}
	return nil, false, fmt.Errorf("recorder: HTTP %d", res.StatusCode)
}
