package console

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/problem"
)

// endless has a page of intents after every page, until it fails.
type endless struct {
	api
	pages, until int
}

func (e *endless) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/v1/intents" || r.URL.Query().Get("limit") != "1000" {
		e.api.ServeHTTP(w, r)
		return
	}
	if e.pages++; e.pages > e.until {
		problem.New(intents.Internal, "", "").Write(w)
		return
	}
	fmt.Fprintf(w, `{"intents":[%s{}],"cursor":"%d"}`, strings.Repeat("{},", maxCounted-1), e.pages)
}

// TestExport: an export says where it ends before what the search finds does, and one that breaks off
// does not look whole.
func TestExport(t *testing.T) {
	for until, lines := range map[int]int{1000: maxExport + 1, 3: -1, 0: 0} {
		c := newConsole(t, &endless{until: until})
		cookie := logIn(t, c)
		func() {
			defer func() {
				if v := recover(); (v == http.ErrAbortHandler) != (lines < 0) { //nolint:errorlint // it is that value
					t.Errorf("after %d pages: %v", until, v)
				}
			}()
			resp := send(c, http.MethodGet, "/console/record/intents", nil, cookie)
			defer resp.Body.Close()
			raw, err := io.ReadAll(resp.Body)
			text := string(raw)
			if err != nil || lines > 0 && (strings.Count(text, "\n") != lines || !strings.HasSuffix(text, "{\"more\":true}\n")) || lines == 0 && resp.StatusCode != http.StatusInternalServerError {
				t.Errorf("after %d pages: %v, HTTP %d, %d lines", until, err, resp.StatusCode, strings.Count(text, "\n"))
			}
		}()
	}
}

// TestFacets: the most frequent values come first, and the chosen one can be taken back.
func TestFacets(t *testing.T) {
	var found []entry
	for i := range 30 {
		found = append(found, entry{IntentEntry: catalog.IntentEntry{Type: fmt.Sprint("t", i*i/90), Verdict: "allow", UserID: "ana"}})
	}
	got := map[string]facet{}
	for _, f := range facets(filter{"type": "t0", "plan_id": "p"}, found, time.Now()) {
		got[f.Name] = f
	}
	types := got["Type"].Values
	if len(types) != maxChoices || types[0] != (choice{"t0", 10, "?plan_id=p", true}) || types[1] != (choice{"t1", 4, "?plan_id=p&type=t1", false}) {
		t.Errorf("%+v", types)
	}
	if _, there := got["Skill"]; there || len(got["Time"].Values) != 4 || got["User"].Values[0].Link != "?plan_id=p&type=t0&user=ana" {
		t.Errorf("%+v", got)
	}
}
