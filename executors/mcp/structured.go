package mcp

import (
	"encoding/json"
	"errors"

	"github.com/mark3labs/mcp-go/client/transport"
)

// maxStructured bounds structured content in bytes: it is decoded into values and
// checked against a schema, which takes many times the room and time of a text.
// What is larger can be sent as a text.
const maxStructured = 8 << 20

var errStructured = errors.New("structured content too large")

// takeStructured takes the structured content out of a result, so that nobody
// decodes it into values but who checks it.
func (st *state) takeStructured(r *transport.JSONRPCResponse) error {
	var members map[string]json.RawMessage
	if json.Unmarshal(r.Result, &members) != nil {
		return nil //nolint:nilerr // whoever reads the result says what is wrong with it
	}
	const name = "structuredContent"
	content, ok := members[name]
	if !ok || none(content) {
		return nil
	}
	if len(content) > maxStructured {
		st.limit.Store(maxStructured)
		st.tooLarge.Store(true)
		return errStructured
	}
	delete(members, name)
	rest, err := json.Marshal(members)
	if err != nil {
		return err
	}
	st.structured, r.Result = content, rest
	return nil
}
