package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"sync/atomic"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/egress"
	"aob.dev/writ/internal/problem"
	"aob.dev/writ/router/httpapi"
)

// several are processes that have one interface. A request goes to one of them, in turn, and
// to the next where it certainly did nothing: it did not connect, or reads and the process
// serves nothing now.
type several struct {
	at   []*url.URL
	door http.RoundTripper
	next atomic.Uint32
}

func newSeveral(urls []string) (*several, error) {
	s := &several{door: egress.Transport(urls...)}
	for _, text := range urls {
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Path != "" && u.Path != "/" {
			return nil, fmt.Errorf("%q is not http(s)://host:port", text)
		}
		s.at = append(s.at, u)
	}
	return s, nil
}

// errNowhere says that no process is named that has the interface.
var errNowhere = errors.New("no process is named")

// RoundTrip implements http.RoundTripper.
func (s *several) RoundTrip(r *http.Request) (*http.Response, error) {
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	first, err := s.next.Add(1), errNowhere
	for i := range s.at {
		at := s.at[(int(first)+i)%len(s.at)]
		out := r.Clone(r.Context())
		out.URL.Scheme, out.URL.Host, out.Host = at.Scheme, at.Host, at.Host
		if r.Body != nil {
			out.Body = io.NopCloser(r.Body) // the next one sends it where this one does not connect
		}
		var res *http.Response
		if res, err = s.door.RoundTrip(out); err == nil {
			if res.StatusCode != http.StatusServiceUnavailable || !reads || i == len(s.at)-1 {
				return res, nil
			}
			err = errors.Join(errors.New("it serves nothing now"), res.Body.Close())
			continue
		}
		var dial *net.OpError
		if !reads && (!errors.As(err, &dial) || dial.Op != "dial") {
			break
		}
	}
	return nil, err
}

// elsewhere forwards to processes of a role. setting is where their URLs come from.
func elsewhere(urls []string, role, setting string, log *slog.Logger) (http.Handler, error) {
	s, err := newSeveral(urls)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", setting, err)
	}
	return &httputil.ReverseProxy{
		Transport: s, Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = "http", role },
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() == nil {
				log.WarnContext(r.Context(), "no process of a role answers", slog.String("role", role), slog.String("setting", setting), slog.String("error", err.Error()))
			}
			away("no " + role + " answers now").Write(w)
		},
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}, nil
}

// inclusionPath is where a recorder proves a position.
const inclusionPath = "/ledger/inclusion/"

// ledgerAPI is the interface of the recorder of the cell: here, or that of other processes.
func (n *Node) ledgerAPI() (http.Handler, error) {
	if n.recorder == nil {
		return elsewhere(n.cfg.Cluster.Recorders, "recorder", "recorders", n.cfg.Log)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !n.recording.Load() {
			away("another process is the recorder of the cell").Write(w)
			return
		}
		p := proofs{n.ledger}
		position, ok := cutPosition(r.URL.Path)
		if !ok {
			http.StripPrefix("/ledger", p.Handler()).ServeHTTP(w, r)
			return
		}
		doc, published, err := p.Proof(r.Context(), position)
		switch {
		case err != nil:
			problem.Of(err).Write(w)
		case !published:
			problem.New(intents.InFlight, "", "the record is in the next checkpoint").Write(w)
		default:
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(doc) //nolint:gosec // G705: our own JSON; an error: the client is gone
		}
	}), nil
}

func cutPosition(path string) (int64, bool) {
	if len(path) <= len(inclusionPath) || path[:len(inclusionPath)] != inclusionPath {
		return 0, false
	}
	position, err := strconv.ParseInt(path[len(inclusionPath):], 10, 64)
	return position, err == nil && position >= 0
}

// proofs that the router serves: of the ledger here, or of the recorder's.
func (n *Node) proofs() (httpapi.Ledger, error) {
	if n.alone() {
		return proofs{n.ledger}, nil
	}
	h, err := n.ledgerAPI()
	if err != nil {
		return nil, err
	}
	if n.recorder != nil {
		return nearProofs{h, n}, nil
	}
	s, err := newSeveral(n.cfg.Cluster.Recorders)
	return farProofs{h, egress.Client(s)}, err
}

// nearProofs are those of the recorder in this process, as long as it is the cell's.
type nearProofs struct {
	handler http.Handler
	node    *Node
}

// Handler implements httpapi.Ledger.
func (p nearProofs) Handler() http.Handler { return p.handler }

// Proof implements httpapi.Ledger.
func (p nearProofs) Proof(ctx context.Context, position int64) (doc json.RawMessage, published bool, err error) {
	if !p.node.recording.Load() {
		return nil, false, away("another process is the recorder of the cell")
	}
	return proofs{p.node.ledger}.Proof(ctx, position)
}

// away is the problem of a process that does not answer now.
func away(detail string) *problem.Problem {
	p := problem.New(intents.Overloaded, "", detail)
	p.Status = http.StatusServiceUnavailable
	return p
}

// farProofs are those of a recorder that is another process.
type farProofs struct {
	handler http.Handler
	client  *http.Client
}

// Handler implements httpapi.Ledger.
func (f farProofs) Handler() http.Handler { return f.handler }

// maxProof of a position, in bytes.
const maxProof = 1 << 20

// Proof implements httpapi.Ledger.
func (f farProofs) Proof(ctx context.Context, position int64) (doc json.RawMessage, published bool, err error) {
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
		return nil, false, away("no recorder proves anything now")
	}
	return nil, false, fmt.Errorf("recorder: HTTP %d", res.StatusCode)
}
