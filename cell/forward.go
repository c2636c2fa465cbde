package cell

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync/atomic"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/egress"
	"aob.dev/writ/internal/problem"
)

// several are processes that have the same interface. Requests go to them in turn. A request goes
// to the next process if it certainly had no effect: it did not connect, or it is a read and the
// process serves nothing now.
type several struct {
	urls []*url.URL
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
		s.urls = append(s.urls, u)
	}
	return s, nil
}

// errNowhere says that no process with the interface is named.
var errNowhere = errors.New("no process is named")

// RoundTrip implements http.RoundTripper.
func (s *several) RoundTrip(r *http.Request) (*http.Response, error) {
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	first, err := s.next.Add(1), errNowhere
	for i := range s.urls {
		at := s.urls[(int(first)+i)%len(s.urls)]
		out := r.Clone(r.Context())
		out.URL.Scheme, out.URL.Host, out.Host = at.Scheme, at.Host, at.Host
		if r.Body != nil {
			out.Body = io.NopCloser(r.Body) // the next one sends it if this one does not connect
		}
		var res *http.Response
		if res, err = s.door.RoundTrip(out); err == nil {
			if res.StatusCode != http.StatusServiceUnavailable || !reads || i == len(s.urls)-1 {
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

// Forward forwards to processes of a role. setting names the setting that has their URLs.
func Forward(urls []string, role, setting string, log *slog.Logger) (http.Handler, error) {
	s, err := newSeveral(urls)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", setting, err)
	}
	return &httputil.ReverseProxy{
		Transport: s, Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = "http", role },
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if clock.Stopping(r.Context()) {
				problem.Stopped("", "").Write(w)
				return
			}
			if r.Context().Err() == nil {
				log.WarnContext(r.Context(), "no process of a role answers", slog.String("role", role), slog.String("setting", setting), slog.String("error", err.Error()))
			}
			Unavailable("no " + role + " answers now").Write(w)
		},
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}, nil
}

// Client returns a client of the processes at urls; request URLs name no host.
func Client(urls ...string) (*http.Client, error) {
	s, err := newSeveral(urls)
	if err != nil {
		return nil, err
	}
	return egress.Client(s), nil
}

// Unavailable is the problem of a process that does not answer now.
func Unavailable(detail string) *problem.Problem {
	p := problem.New(intents.Overloaded, "", detail)
	p.Status = http.StatusServiceUnavailable
	return p
}
