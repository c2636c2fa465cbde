package executors

import (
	"encoding/json"
	"math"
	"slices"

	"aob.dev/writ/intents"
)

// The closed set of obligations. The router carries out ttl_max and the gateway
// notify; an executor accepts both and does nothing.
const (
	ObligationMask     = "mask"
	ObligationMaxBytes = "max_bytes"
	ObligationTTLMax   = "ttl_max"
	ObligationDriver   = "driver"
	ObligationNotify   = "notify"
)

// checkObligations refuses obligations that this executor does not know or cannot
// read: executing the intent without them would bypass policy.
func checkObligations(obs []intents.Obligation) error {
	for _, ob := range obs {
		ok := true
		switch ob.Name {
		case ObligationTTLMax, ObligationNotify:
		case ObligationMaxBytes:
			_, ok = wholeNumber(ob.Value)
		case ObligationMask:
			_, ok = texts(ob.Value)
		case ObligationDriver:
			_, ok = ob.Value.(string)
		default:
			return intents.Refuse(intents.PolicyDenied, "", "the ticket carries an obligation that this executor does not know")
		}
		if !ok {
			return intents.Refuse(intents.PolicyDenied, "", "the ticket's obligation "+ob.Name+" has a value that cannot be read")
		}
	}
	return nil
}

// Driver is the weakest sandbox driver that the intent may run under; "": no policy
// sets one.
func (o *Intent) Driver() string {
	for _, ob := range o.Ticket.Obligations {
		if name, ok := ob.Value.(string); ok && ob.Name == ObligationDriver {
			return name
		}
	}
	return ""
}

// oblige applies the obligations of a result: mask, then max_bytes. Both apply to the delivered
// data, in the result and in the files that it names.
func oblige(o *Intent, result json.RawMessage) (json.RawMessage, *Failure) {
	for _, ob := range o.Ticket.Obligations {
		if pointers, ok := texts(ob.Value); ok && ob.Name == ObligationMask {
			if isReference(result) {
				return nil, Fail(intents.OversizedOutput, "a policy masks the result, but the result is too large to be masked")
			}
			result = intents.Mask(result, pointers)
			if _, files := delivered(result); files > 0 {
				return nil, Fail(intents.OversizedOutput, "a policy masks the result, and what a file of the result holds cannot be masked")
			}
		}
	}
	for _, ob := range o.Ticket.Obligations {
		limit, ok := wholeNumber(ob.Value)
		if !ok || ob.Name != ObligationMaxBytes {
			continue
		}
		if size, _ := delivered(result); int64(len(result))+size > limit {
			return nil, Fail(intents.OversizedOutput, "the result, with the files that it names, is larger than a policy allows")
		}
	}
	return result, nil
}

// obliged applies the obligations of a result to the details of a failure. Details that violate
// them, or that a mask does not fit, are dropped.
func (f *Failure) obliged(o *Intent) *Failure {
	if f.Details == nil {
		return f
	}
	kept := *f
	masked := slices.ContainsFunc(o.Ticket.Obligations, func(ob intents.Obligation) bool { return ob.Name == ObligationMask })
	if _, broken := oblige(o, f.Details); masked || broken != nil {
		kept.Details = nil
	}
	return &kept
}

// isReference reports whether the data of a result is in a file, which cannot be
// masked.
func isReference(result json.RawMessage) bool {
	var ref dataRef
	return json.Unmarshal(result, &ref) == nil && ref.FileID != "" && ref.Sample != nil
}

// dataRef is an object of a result that stands for data elsewhere: the file of a large result, a
// file beside a result, or an artifact behind a link.
type dataRef struct {
	FileID   string            `json:"file_id"`
	Sample   []json.RawMessage `json:"sample"`
	Type     string            `json:"type"`
	Artifact string            `json:"artifact"`
	URL      string            `json:"url"`
}

func (n dataRef) isFile() bool {
	return n.FileID != "" && n.FileID != intents.Masked && (n.Sample != nil || n.Type != "") ||
		n.Artifact != "" && n.URL != "" && n.URL != intents.Masked
}

// delivered counts the files that a result names, wherever in it, and their bytes.
func delivered(value json.RawMessage) (size int64, files int) {
	var members map[string]json.RawMessage
	var elements []json.RawMessage
	switch {
	case json.Unmarshal(value, &members) == nil:
		var n dataRef
		if json.Unmarshal(value, &n) == nil && n.isFile() {
			var bytes float64
			_ = json.Unmarshal(members["size_bytes"], &bytes) // not given: it is small
			size, files = int64(min(max(bytes, 0), math.MaxInt32)), 1
		}
		for _, v := range members {
			elements = append(elements, v)
		}
	case json.Unmarshal(value, &elements) != nil:
		return 0, 0
	}
	for _, v := range elements {
		more, n := delivered(v)
		size, files = size+more, files+n
	}
	return size, files
}

// wholeNumber reads a count of bytes; JSON numbers arrive as float64.
func wholeNumber(v any) (int64, bool) {
	f, ok := v.(float64)
	if !ok || f < 0 || f > math.MaxInt32 || f != math.Trunc(f) {
		return 0, false
	}
	return int64(f), true
}

// texts reads one text or a list of them.
func texts(v any) ([]string, bool) {
	if s, ok := v.(string); ok {
		return []string{s}, true
	}
	list, ok := v.([]any)
	if !ok {
		return nil, false
	}
	out := make([]string, 0, len(list))
	for _, e := range list {
		s, ok := e.(string)
		if !ok {
			return nil, false
		}
		out = append(out, s)
	}
	return out, true
}
