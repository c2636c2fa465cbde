package cell

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/egress"
	"aob.dev/writ/internal/problem"
)

// several are processes that have the same interface. Requests go to them in turn. All of them may be
// repeated: reads, and submissions, whose same bytes are joined. So a request goes to the next process
// if one does not connect, if it is a read and the process serves nothing now, and if there is no
// answer for a while: a process that is stopped takes requests and answers none.
type several struct {
	urls []*url.URL
	door http.RoundTripper
	next atomic.Uint32
}

// maxBody is what is read of a request's body: a byte more than the largest that a process takes, which
// refuses it.
const maxBody = intents.MaxBatchSize + 1

// answerTime is how long a process may take before the next one is asked, too.
const answerTime = 5 * time.Second

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

// RoundTrip implements http.RoundTripper. The first answer counts.
func (s *several) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		defer r.Body.Close()
		var err error
		if body, err = io.ReadAll(io.LimitReader(r.Body, maxBody)); err != nil {
			return nil, err
		}
	}
	answers, left := make(chan *exchange), make(chan struct{})
	var asked []*exchange
	defer func() {
		close(left)
		for _, x := range asked {
			x.end()
		}
	}()
	first, open, err := int(s.next.Add(1)), 0, errNowhere
	ask := func() {
		if n := len(asked); n < len(s.urls) {
			x := begin(s.door, to(s.urls[(first+n)%len(s.urls)], r, body), answers, left)
			asked, open = append(asked, x), open+1
		}
	}
	late := time.NewTicker(answerTime)
	defer late.Stop()
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	for ask(); open > 0; {
		select {
		case <-late.C:
			ask()
		case x := <-answers:
			open--
			switch last := open == 0 && len(asked) == len(s.urls); {
			case x.err != nil:
				err = x.err
			case !reads || last || x.res.StatusCode != http.StatusServiceUnavailable:
				return x.take(), nil
			default:
				err = errors.Join(errors.New("it serves nothing now"), x.res.Body.Close())
			}
			ask()
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	return nil, err
}

// to is a request to one of the processes.
func to(at *url.URL, r *http.Request, body []byte) *http.Request {
	out := r.Clone(r.Context())
	out.URL.Scheme, out.URL.Host, out.Host = at.Scheme, at.Host, at.Host
	if r.Body != nil {
		out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	return out
}

// exchange is a request to one process.
type exchange struct {
	end context.CancelFunc
	res *http.Response
	err error
}

// begin sends a request. The exchange goes to answers, unless all that wait for it have left.
func begin(door http.RoundTripper, r *http.Request, answers chan<- *exchange, left <-chan struct{}) *exchange {
	ctx, cancel := context.WithCancel(r.Context())
	x := &exchange{end: cancel}
	go func() {
		x.res, x.err = door.RoundTrip(r.WithContext(ctx)) //nolint:bodyclose // whoever takes it, or this
		select {
		case answers <- x:
		case <-left:
			if x.err == nil {
				_ = x.res.Body.Close()
			}
		}
	}()
	return x
}

// take gives the answer away: its exchange ends when its body is closed.
func (x *exchange) take() *http.Response {
	x.res.Body = &body{x.res.Body, x.end}
	x.end = func() {}
	return x.res
}

// body is that of an answer.
type body struct {
	io.ReadCloser
	end func()
}

func (b *body) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
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
