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
	var replies exchanges
	defer func() { replies.leave() }()
	first, err := int(s.next.Add(1)), errNowhere
	late := time.NewTicker(answerTime)
	defer late.Stop()
	ask := func() {
		if n := len(replies.asked); n < len(s.urls) {
			replies.ask(s.door, to(s.urls[(first+n)%len(s.urls)], r, body))
		}
	}
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	for ask(); replies.open > 0; {
		select {
		case <-late.C:
			ask()
		case x := <-replies.got:
			replies.open--
			switch last := replies.open == 0 && len(replies.asked) == len(s.urls); {
			case x.err != nil:
				err = x.err
			case !reads || last || x.res.StatusCode != http.StatusServiceUnavailable:
				return replies.take(x), nil
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

// exchanges are one request to several processes.
type exchanges struct {
	asked []context.CancelFunc // ends each
	open  int                  // without an answer
	got   chan exchanged
}

// exchanged is the answer of a process.
type exchanged struct {
	number int
	res    *http.Response
	err    error
}

func (e *exchanges) ask(door http.RoundTripper, r *http.Request) {
	if e.got == nil {
		e.got = make(chan exchanged)
	}
	ctx, cancel := context.WithCancel(r.Context())
	n := len(e.asked)
	e.asked, e.open = append(e.asked, cancel), e.open+1
	go func() {
		res, err := door.RoundTrip(r.WithContext(ctx)) //nolint:bodyclose // whoever takes it, or leave
		e.got <- exchanged{n, res, err}
	}()
}

// take gives an answer away: its exchange ends when its body is closed.
func (e *exchanges) take(x exchanged) *http.Response {
	x.res.Body = &body{x.res.Body, e.asked[x.number]}
	e.asked[x.number] = func() {}
	return x.res
}

// leave ends the exchanges of which nobody takes the answer.
func (e *exchanges) leave() {
	for _, cancel := range e.asked {
		cancel()
	}
	go func(open int) {
		for range open {
			if x := <-e.got; x.err == nil {
				_ = x.res.Body.Close()
			}
		}
	}(e.open)
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
