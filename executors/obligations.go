package executors

import (
	"encoding/json"
	"math"

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
// read: to carry the order out without them would be a way around policy.
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

// Driver is the weakest sandbox driver that the order may run under; "": no policy
// sets one.
func (o *Order) Driver() string {
	for _, ob := range o.Ticket.Obligations {
		if name, ok := ob.Value.(string); ok && ob.Name == ObligationDriver {
			return name
		}
	}
	return ""
}

// oblige applies what binds a result: mask, then max_bytes.
func oblige(o *Order, result json.RawMessage) (json.RawMessage, *Failure) {
	for _, ob := range o.Ticket.Obligations {
		if pointers, ok := texts(ob.Value); ok && ob.Name == ObligationMask {
			if isReference(result) {
				return nil, Fail(intents.OversizedOutput, "a policy masks the result, but the result is too large to be masked")
			}
			result = intents.Mask(result, pointers)
		}
	}
	for _, ob := range o.Ticket.Obligations {
		if limit, ok := wholeNumber(ob.Value); ok && ob.Name == ObligationMaxBytes && int64(len(result)) > limit {
			return nil, Fail(intents.OversizedOutput, "the result is larger than a policy allows")
		}
	}
	return result, nil
}

// isReference reports whether the data of a result is in a file, which cannot be
// masked.
func isReference(result json.RawMessage) bool {
	var ref struct {
		FileID string   `json:"file_id"`
		Sample []string `json:"sample"`
	}
	return json.Unmarshal(result, &ref) == nil && ref.FileID != "" && ref.Sample != nil
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
