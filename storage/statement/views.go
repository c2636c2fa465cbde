// Package statement carries out a SELECT over copies of documents, whichever store has them. It reads no more than
// the queries of its caller select, in the tenant that the caller names.
package statement

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"aob.dev/writ/storage"
)

// Bounds of a statement.
const (
	viewCPU       = 2                // seconds of the processor
	viewTime      = 15 * time.Second // with the start of the process, on a busy machine
	viewRows      = 100
	viewValue     = 1 << 20  // bytes of the longest value that may be made
	viewPattern   = 256      // bytes of a pattern of LIKE or GLOB
	viewMemory    = 1 << 30  // bytes of the process, with the views
	viewBytes     = 4 << 20  // of all values together
	viewDocuments = 10_000   // of one view
	viewStored    = 32 << 20 // bytes of one view
	viewsAtOnce   = 2        // statements, of all tenants
)

// lanes let one statement of a tenant run, and few at once.
type lanes struct {
	mu    sync.Mutex // guards taken
	busy  map[string]bool
	slots chan struct{}
}

var views = lanes{busy: map[string]bool{}, slots: make(chan struct{}, viewsAtOnce)}

// enter a lane; storage.ErrBusy if the tenant has it already.
func (l *lanes) enter(ctx context.Context, tenant string) (leave func(), err error) {
	if !l.take(tenant) {
		return nil, storage.ErrBusy
	}
	select {
	case l.slots <- struct{}{}:
		return func() { <-l.slots; l.free(tenant) }, nil
	case <-ctx.Done():
		l.free(tenant)
		return nil, ctx.Err()
	}
}

func (l *lanes) take(tenant string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	was := l.busy[tenant]
	l.busy[tenant] = true
	return !was
}

func (l *lanes) free(tenant string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.busy, tenant)
}

// view is a copy of documents, with their members as columns.
type view struct {
	Name    string            `json:"name"`
	Columns []string          `json:"columns"`
	Rows    []json.RawMessage `json:"rows"`
}

// selecting is what the process gets that carries a statement out.
type selecting struct {
	Statement string `json:"statement"`
	Views     []view `json:"views"`
}

// viewResult is its answer.
type viewResult struct {
	Rows  []map[string]any `json:"rows"`
	Error string           `json:"error,omitempty"`
}

// errView reports that a statement was ended.
var errView = fmt.Errorf("it took more than %d s of the processor", viewCPU)

// Rows carries one SELECT out over the documents that queries select in a store, and those in also, by index. A view has
// the name of its index without agent_, and the members as columns; cut are those of which
// only the first documents of the query are in it. The statement may have LEFT and casts as in PostgreSQL; else it
// is SQLite's. It runs in a separate process,
// which has a copy of the views and nothing else, and is killed when it exceeds its limits: one
// function can block SQLite for hours. A tenant has one at a time;
// storage.ErrBusy else. Any other error is for the statement's author.
func Rows(ctx context.Context, docs storage.Documents, tenant string, of map[string]storage.Query, also map[string][]json.RawMessage, statement string) (rows []map[string]any, cut []string, err error) {
	if strings.Contains(statement, ";") {
		return nil, nil, errors.New("one SELECT, without a semicolon")
	}
	if statement, err = withoutCasts(statement); err != nil {
		return nil, nil, err
	}
	leave, err := views.enter(ctx, tenant)
	if err != nil {
		return nil, nil, err
	}
	defer leave()
	in := selecting{Statement: statement}
	for index, q := range of {
		v, whole, err := copyOf(ctx, docs, tenant, index, q)
		if err != nil {
			return nil, nil, err
		}
		if !whole {
			cut = append(cut, v.Name)
		}
		in.Views = append(in.Views, v)
	}
	for index, docs := range also {
		v, err := viewOf(index)
		if err != nil {
			return nil, nil, err
		}
		v.Rows = docs
		in.Views = append(in.Views, v)
	}
	rows, err = in.run(ctx)
	return rows, cut, err
}

func viewOf(index string) (v view, err error) {
	v.Name = strings.TrimPrefix(index, "agent_")
	fields, err := storage.Fields(index)
	for _, f := range fields {
		if f.Kind != storage.Dense {
			v.Columns = append(v.Columns, f.Name)
		}
	}
	return v, err
}

// copyOf copies documents, as many as there may be.
func copyOf(ctx context.Context, docs storage.Documents, tenant, index string, q storage.Query) (v view, whole bool, err error) {
	if v, err = viewOf(index); err != nil {
		return v, false, err
	}
	for size := 0; ; {
		page, err := docs.Search(ctx, tenant, index, q)
		if err != nil {
			return v, false, err
		}
		for _, doc := range page.Documents {
			if size += len(doc.Body); size > viewStored || len(v.Rows) == viewDocuments {
				return v, false, nil
			}
			v.Rows = append(v.Rows, doc.Body)
		}
		if page.Cursor == "" {
			return v, true, nil
		}
		q.After = page.Cursor
	}
}

// run starts the process, this program under another name, and waits for its answer.
func (in selecting) run(ctx context.Context) ([]map[string]any, error) {
	raw, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	self := "/proc/self/exe" // even if the file has been replaced
	if _, err := os.Stat(self); err != nil {
		if self, err = os.Executable(); err != nil {
			return nil, err
		}
	}
	short, cancel := context.WithTimeout(ctx, viewTime)
	defer cancel()
	cmd := exec.CommandContext(short, self)
	var out bytes.Buffer
	cmd.Args, cmd.Env, cmd.Dir, cmd.Stdin, cmd.Stdout = []string{processName}, []string{"GOMAXPROCS=2"}, "/", bytes.NewReader(raw), &out
	if err := cmd.Run(); err != nil && ctx.Err() == nil {
		return nil, errView
	} else if err != nil {
		return nil, ctx.Err()
	}
	var answer viewResult
	dec := json.NewDecoder(&out)
	dec.UseNumber()
	if err := dec.Decode(&answer); err != nil {
		return nil, errView
	}
	if answer.Error != "" {
		return nil, errors.New(answer.Error)
	}
	return answer.Rows, nil
}
