package cell

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"aob.dev/writ/intents"
)

// TestSeveral: a request goes to the next process, with its body, if one does not connect; a read
// also if one serves nothing now.
func TestSeveral(t *testing.T) {
	serve := func(status int) (*httptest.Server, *int) {
		calls := new(int)
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			*calls++
			body, _ := io.ReadAll(r.Body)
			w.WriteHeader(status)
			_, _ = w.Write(append([]byte(r.URL.Path+" "), body...))
		}))
		t.Cleanup(s.Close)
		return s, calls
	}
	up, served := serve(http.StatusOK)
	away, asked := serve(http.StatusServiceUnavailable)
	const closed = "http://127.0.0.1:1"
	for _, tt := range []struct {
		name, method string
		urls         []string
		status       int
	}{
		{"an intent where one is down", http.MethodPost, []string{closed, up.URL}, http.StatusOK},
		{"a read where one is down", http.MethodGet, []string{closed, up.URL}, http.StatusOK},
		{"a read where one serves nothing", http.MethodGet, []string{away.URL, up.URL}, http.StatusOK},
		{"all are down", http.MethodPost, []string{closed}, http.StatusServiceUnavailable},
		{"none is named", http.MethodGet, nil, http.StatusServiceUnavailable},
	} {
		h, err := Forward(tt.urls, "router", "routers", slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		body := ""
		if tt.method == http.MethodPost {
			body = "intent"
		}
		for range max(1, len(tt.urls)) { // it takes turns
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), tt.method, "/v1/intents", strings.NewReader(body)))
			if w.Code != tt.status || tt.status == http.StatusOK && w.Body.String() != "/v1/intents "+body {
				t.Errorf("%s: HTTP %d %s", tt.name, w.Code, w.Body)
			}
		}
	}
	if *served != 6 || *asked == 0 {
		t.Errorf("%d requests were served, %d refused", *served, *asked)
	}
	*served, *asked = 0, 0
	h, err := Forward([]string{away.URL, up.URL}, "router", "routers", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/intents", strings.NewReader("intent")))
	}
	if *served != 1 || *asked != 1 {
		t.Errorf("two intents came %d times", *served+*asked)
	}
	for _, url := range []string{"router:8080", "ftp://router", "http://router/path"} {
		if _, err := Forward([]string{url}, "router", "routers", slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "routers") {
			t.Errorf("%s: %v", url, err)
		}
		if _, err := Client(url); err == nil {
			t.Errorf("%s is a client's", url)
		}
	}
}

// TestSeveralStopped: a process that takes requests and answers none delays them for a while, and a late
// answer counts.
func TestSeveralStopped(t *testing.T) {
	listening, err := net.Listen("tcp", "127.0.0.1:0") // as one that is stopped
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listening.Close() })
	stopped := "http://" + listening.Addr().String()
	asked, goOn := make(chan bool), make(chan bool)
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- true
		<-goOn
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write(append([]byte("late "), body...))
	}))
	t.Cleanup(slow.Close)
	h, err := Forward([]string{stopped, slow.URL}, "router", "routers", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		go func() { <-asked; goOn <- true }()
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/intents", strings.NewReader("intent")))
		if w.Code != http.StatusOK || w.Body.String() != "late intent" {
			t.Errorf("HTTP %d %s", w.Code, w.Body)
		}
	}
}

// TestSeveralLargeBody: of a body, no more is read than what shows the process that it is too large.
func TestSeveralLargeBody(t *testing.T) {
	var got int
	process := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = len(body)
	}))
	t.Cleanup(process.Close)
	h, err := Forward([]string{process.URL}, "router", "routers", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/batches", strings.NewReader(strings.Repeat("x", 2*maxBody))))
	if got != maxBody || got <= intents.MaxBatchSize {
		t.Errorf("%d bytes", got)
	}
}
