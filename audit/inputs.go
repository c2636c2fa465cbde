package audit

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/policies"
)

// contents are the small results that later intents may name as their input: policies see
// them. The oldest are dropped when there are too many.
type contents struct {
	data     map[string][]byte // by digest
	byIntent map[string]string // digests, by the intent_id of their intent
	intent   []string          // digests, as they were noted
	size     int
	// blob reads one of a tenant that the auditor has.
	blob func(tenant, digest string) ([]byte, error)
}

// maxContents is how many bytes are remembered.
const maxContents = 64 << 20

func newContents(blob func(tenant, digest string) ([]byte, error)) *contents {
	return &contents{data: map[string][]byte{}, byIntent: map[string]string{}, blob: blob}
}

// note retains the data of an intent; on a nil receiver it does nothing.
func (c *contents) note(intentID string, data []byte) {
	if c == nil || len(data) == 0 || len(data) >= policies.MaxInputSize {
		return
	}
	digest := intents.Digest(data)
	c.byIntent[intentID] = digest
	if _, there := c.data[digest]; there {
		return
	}
	c.data[digest], c.intent, c.size = data, append(c.intent, digest), c.size+len(data)
	for c.size > maxContents {
		c.size -= len(c.data[c.intent[0]])
		delete(c.data, c.intent[0])
		c.intent = c.intent[1:]
	}
	if len(c.byIntent) > 2*len(c.intent)+minSweep {
		clear(c.byIntent) // who named what is known from then on only of new ones
	}
}

// noteResult retains what an outcome gives to later intents.
func (c *contents) noteResult(o *open, it *item) {
	if c == nil || it.outcome.Status != intents.Done || it.outcome.Result == nil {
		return
	}
	if value, file, err := catalog.DataOf(it.outcome.Result); err == nil && file == "" {
		c.note(o.intentID, value)
	}
}

// noteIntent retains the file that an intent makes of its arguments.
func (c *contents) noteIntent(o *intent) {
	if c == nil || o.hidden() || o.body.Intent.Type != "write_temp" {
		return
	}
	var args struct {
		Data json.RawMessage `json:"data"`
	}
	if json.Unmarshal(o.body.Intent.Args, &args) != nil {
		return
	}
	var text string
	if json.Unmarshal(args.Data, &text) == nil {
		args.Data = []byte(text)
	}
	c.note("file of "+o.decision.IntentID, args.Data)
}

// completeFacts completes the inputs of a decision with what policies saw of the data that its intent
// names. Data that the record does not account for did not exist.
func (c *contents) completeFacts(o *intent, f *intents.DecisionInputs) error {
	if c == nil || o.hidden() {
		return nil
	}
	row, _ := catalog.Builtin().Lookup(o.body.Intent.Type)
	named, err := catalog.InputsOf(row, o.body.Intent.Args)
	if err != nil {
		return nil //nolint:nilerr // refused for its arguments
	}
	for _, from := range named {
		at := slices.IndexFunc(f.Inputs, func(x intents.HeldInput) bool { return x.Pointer == from.Pointer })
		if at < 0 {
			f.Inputs = append(f.Inputs, intents.HeldInput{Pointer: from.Pointer})
			continue
		}
		in := f.Inputs[at]
		if is := c.digestOf(from.Ref); is != "" && in.SHA256 != "" && in.SHA256 != is {
			return errors.New("decided on another input than the one that it names")
		}
		data, there := c.input(o.body.Actor.Tenant, in)
		if !there {
			continue
		}
		if f.Data == nil {
			f.Data = map[string][]byte{}
		}
		f.Data[in.Pointer] = data
	}
	return nil
}

// input is the content of an input that policies saw.
func (c *contents) input(tenant string, in intents.HeldInput) ([]byte, bool) {
	if in.SHA256 == "" || in.Size >= policies.MaxInputSize {
		return nil, false
	}
	data, there := c.data[in.SHA256]
	if !there && strings.HasPrefix(in.Ref, "cas://") {
		var err error
		data, err = c.blob(tenant, in.SHA256)
		there = err == nil && intents.Digest(data) == in.SHA256
	}
	return data, there && int64(len(data)) == in.Size
}

// digestOf is the digest of what an input names; empty: it is not known.
func (c *contents) digestOf(ref string) string {
	if digest, is := strings.CutPrefix(ref, "cas://"); is {
		return digest
	}
	return c.byIntent[ref]
}
