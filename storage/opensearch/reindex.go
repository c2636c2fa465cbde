package opensearch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"aob.dev/writ/internal/clock"
	"aob.dev/writ/storage"
)

// taskPoll is how often a copy that the server makes is looked at.
const taskPoll = 200 * time.Millisecond

// ErrCutByMonths reports an index without an alias, which cannot be replaced.
var ErrCutByMonths = errors.New("is cut by months, and takes new members in place; its months are made again from the journal, or removed")

// Reindex replaces the index behind an alias by a new one with the mapping of this program and
// all documents, and returns their number. Vectors of another dimension are
// left out: an embedder makes them again. While it copies, the server refuses
// writes to the old index, with an error that may pass, so that none is lost. No
// other process may use the index: its cache would be wrong afterwards.
//
// Alias and removal of the old index change in one step. A crash before it leaves
// the old index in force, refusing writes, and a new one beside it: Migrate reports
// it, and the next Reindex removes the new one and begins again. Any other
// failure is undone at once.
func (d *Documents) Reindex(ctx context.Context, index string) (documents int64, err error) {
	if _, months := storage.Appended[index]; months {
		return 0, fmt.Errorf("%s %w", index, ErrCutByMonths)
	}
	if err := d.template(ctx, index); err != nil {
		return 0, fmt.Errorf("reindex %s: %w", index, err)
	}
	c, err := d.behind(ctx, index)
	if err != nil {
		return 0, fmt.Errorf("reindex %s: %w", index, err)
	}
	documents, err = d.renew(ctx, index, c)
	if errors.Is(err, errUnsure) {
		return 0, fmt.Errorf("reindex %s: %w", index, err)
	}
	if err != nil {
		// Undone even if ctx has ended: a block that stays stops every write.
		undo := d.undo(context.WithoutCancel(ctx), c)
		return 0, fmt.Errorf("reindex %s: %w", index, errors.Join(err, undo))
	}
	d.cache.forget()
	return documents, nil
}

// succession is the index behind an alias, the one that will be, and the remains of
// earlier runs.
type succession struct {
	old, next string
	left      []string
}

// behind finds the indices of an alias. The next one has a higher number than all
// that exist, as an abandoned copy may still write to it.
func (d *Documents) behind(ctx context.Context, index string) (c succession, err error) {
	alias := d.alias(index)
	var found map[string]struct {
		Aliases map[string]any `json:"aliases"`
	}
	if err := d.call(ctx, request{method: http.MethodGet, path: "/" + alias + "-*/_alias", repeat: true}, &found); err != nil {
		return c, err
	}
	last := 0
	for _, name := range slices.Sorted(maps.Keys(found)) {
		n, err := strconv.Atoi(strings.TrimPrefix(name, alias+"-"))
		if err != nil {
			continue // not ours
		}
		last = max(last, n)
		switch _, in := found[name].Aliases[alias]; {
		case !in:
			c.left = append(c.left, name)
		case c.old != "":
			return c, fmt.Errorf("the alias %s is over %s and %s: leave it one", alias, c.old, name)
		default:
			c.old = name
		}
	}
	if c.old == "" {
		return c, fmt.Errorf("there is no index behind the alias %s: `writ up` makes it", alias)
	}
	c.next = fmt.Sprintf("%s-%06d", alias, last+1)
	return c, nil
}

// renew makes the next index, fills it and puts it in force.
func (d *Documents) renew(ctx context.Context, index string, c succession) (int64, error) {
	for _, name := range c.left {
		if err := d.drop(ctx, name); err != nil {
			return 0, err
		}
	}
	if err := d.make(ctx, c.next, object{}); err != nil {
		return 0, err
	}
	// Answers when writes that were under way are done.
	if err := d.call(ctx, request{method: http.MethodPut, path: "/" + c.old + "/_block/write", repeat: true}, nil); err != nil {
		return 0, err
	}
	// The copy is of what searches find.
	if err := d.call(ctx, request{method: http.MethodPost, path: "/" + c.old + "/_refresh", repeat: true}, nil); err != nil {
		return 0, err
	}
	if err := d.copy(ctx, index, c); err != nil {
		return 0, err
	}
	documents, err := d.same(ctx, c)
	if err != nil {
		return 0, err
	}
	err = d.call(ctx, request{method: http.MethodPost, path: "/_aliases", body: object{"actions": []object{
		{"add": object{"index": c.next, "alias": d.alias(index)}}, {"remove_index": object{"index": c.old}},
	}}}, nil)
	if err != nil && statusOf(err) == 0 {
		// The answer was lost, and the change may still be under way: undoing it now
		// could interfere.
		if now, again := d.behind(ctx, index); again != nil || now.old != c.next {
			return 0, errors.Join(errUnsure, err)
		}
		err = nil
	}
	return documents, err
}

// errUnsure reports that it is unknown which index is in force. Writes are refused until
// an operator runs the command again.
var errUnsure = errors.New("it is not known whether the new index is in force: run it again")

// fitting leaves vectors out that the next index does not take: they are to be made again.
const fitting = `for (f in params.members) { def v = ctx._source[f]; if (v != null && v.size() != params.dimension) { ctx._source.remove(f); ctx._source.embedder = 'none' } }`

// copy has the server copy all documents, and waits.
func (d *Documents) copy(ctx context.Context, index string, c succession) error {
	fields, err := storage.Fields(index)
	if err != nil {
		return err
	}
	body := object{"source": object{"index": c.old}, "dest": object{"index": c.next, "op_type": "create"}}
	var dense []string
	for _, f := range fields {
		if f.Kind == storage.Dense {
			dense = append(dense, f.Name)
		}
	}
	if len(dense) > 0 {
		body["script"] = object{"lang": "painless", "source": fitting, "params": object{"members": dense, "dimension": d.cfg.Dimension}}
	}
	var begun struct {
		Task string `json:"task"`
	}
	err = d.call(ctx, request{
		method: http.MethodPost, path: "/_reindex", body: body, query: url.Values{"wait_for_completion": {"false"}},
	}, &begun)
	if err != nil {
		return err
	}
	task := "/_tasks/" + url.PathEscape(begun.Task)
	if err := d.await(ctx, task); err != nil {
		stop := d.call(context.WithoutCancel(ctx), request{method: http.MethodPost, path: task + "/_cancel", repeat: true}, nil)
		if statusOf(stop) == http.StatusNotFound {
			stop = nil // it has ended
		}
		return errors.Join(err, stop)
	}
	return nil
}

// await the end of a task.
func (d *Documents) await(ctx context.Context, task string) error {
	for {
		var at struct {
			Completed bool            `json:"completed"`
			Error     json.RawMessage `json:"error"`
			Response  struct {
				Failures []json.RawMessage `json:"failures"`
				Canceled string            `json:"canceled"`
			} `json:"response"`
		}
		err := d.call(ctx, request{method: http.MethodGet, path: task, repeat: true}, &at)
		switch {
		case err != nil && !errors.Is(err, storage.ErrUnavailable):
			return err
		case err != nil: // the copy continues without us
		case at.Completed && len(at.Error) > 0:
			return failed(http.StatusOK, []byte(`{"error":`+string(at.Error)+`}`))
		case at.Completed && len(at.Response.Failures) > 0:
			return fmt.Errorf("%d documents are not taken by the new mapping, or a shard failed", len(at.Response.Failures))
		case at.Completed && at.Response.Canceled != "":
			return errors.New("the copy was cancelled on the server")
		case at.Completed:
			return nil
		}
		if err := clock.Sleep(ctx, taskPoll); err != nil {
			return err
		}
	}
}

// same checks that both indices have the same number of documents, and returns it.
func (d *Documents) same(ctx context.Context, c succession) (int64, error) {
	if err := d.call(ctx, request{method: http.MethodPost, path: "/" + c.next + "/_refresh", repeat: true}, nil); err != nil {
		return 0, err
	}
	var have [2]int64
	for i, name := range []string{c.old, c.next} {
		var answer struct {
			Count int64 `json:"count"`
		}
		if err := d.call(ctx, request{method: http.MethodGet, path: "/" + name + "/_count", repeat: true}, &answer); err != nil {
			return 0, err
		}
		have[i] = answer.Count
	}
	if have[0] != have[1] {
		return 0, fmt.Errorf("%d of %d documents were copied", have[1], have[0])
	}
	return have[0], nil
}

// undo removes what a run has made and lets the old index take writes again.
func (d *Documents) undo(ctx context.Context, c succession) error {
	return errors.Join(d.put(ctx, "/"+c.old+"/_settings", object{"index.blocks.write": false}), d.drop(ctx, c.next))
}

// drop an index; missing is fine.
func (d *Documents) drop(ctx context.Context, name string) error {
	err := d.call(ctx, request{method: http.MethodDelete, path: "/" + name, repeat: true}, nil)
	if statusOf(err) == http.StatusNotFound {
		return nil
	}
	return err
}

// blocked are the indices that refuse writes since a Reindex was cut off.
func (d *Documents) blocked(ctx context.Context) (names []string, err error) {
	var found map[string]struct {
		Settings map[string]string `json:"settings"`
	}
	err = d.call(ctx, request{
		method: http.MethodGet, path: "/" + d.targets(storage.Indices) + "/_settings/index.blocks.write", repeat: true,
		query: url.Values{"flat_settings": {"true"}, "ignore_unavailable": {"true"}},
	}, &found)
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if found[name].Settings["index.blocks.write"] == "true" {
			names = append(names, name)
		}
	}
	return names, err
}

// Missing are the indices that Migrate has still to make; it makes none.
func (d *Documents) Missing(ctx context.Context) (indices []string, err error) {
	for _, index := range storage.Indices {
		if _, months := storage.Appended[index]; months {
			continue // found by pattern, which may find none
		}
		there, err := d.aliased(ctx, index)
		if err != nil {
			return nil, err
		}
		if !there {
			indices = append(indices, index)
		}
	}
	return indices, nil
}
