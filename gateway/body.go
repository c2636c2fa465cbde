package gateway

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/problem"
	"aob.dev/writ/internal/visible"
	"aob.dev/writ/schemas"
)

// readBody decodes a request's body: one JSON object, as strict as for an intent, without members
// unknown to into.
func readBody(c *gin.Context, into any) error {
	canonical, err := readJSON(c)
	if err != nil {
		return err
	}
	if at, known := unknownMember(reflect.TypeOf(into), canonical, ""); at != "" {
		return problem.New(intents.SchemaInvalid, at, "unknown member; the members here are "+known)
	}
	return misfit(intents.UnmarshalStrict(canonical, into))
}

// readJSON reads a request's body: strict JSON, as its canonical bytes.
func readJSON(c *gin.Context) ([]byte, error) {
	_, canonical, err := readOrdered(c)
	return canonical, err
}

// readOrdered is readJSON, and returns the body as it was sent, whose members have an order.
func readOrdered(c *gin.Context) (raw, canonical []byte, err error) {
	raw, err = io.ReadAll(c.Request.Body)
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, nil, problem.New(intents.PayloadTooLarge, "", "the body has more than 1 MiB")
	case err != nil:
		return nil, nil, problem.New(intents.SchemaInvalid, "", "the body ends early")
	case len(raw) == 0:
		return nil, nil, problem.New(intents.SchemaInvalid, "", "the body must be a JSON object")
	}
	raw = surrogates.ReplaceAllFunc(raw, wholeCharacter)
	canonical, err = intents.Canonical(raw)
	if err != nil {
		var r *intents.Refusal
		if errors.As(err, &r) {
			return nil, nil, problem.New(intents.SchemaInvalid, r.Pointer, "the body is not strict JSON: "+r.Reason)
		}
		return nil, nil, problem.New(intents.SchemaInvalid, "", "the body is not strict JSON")
	}
	c.Set(bodyDigest, intents.Digest(canonical))
	return raw, canonical, nil
}

// surrogates matches an escape in JSON text, or a pair of them that is one character.
var surrogates = regexp.MustCompile(`\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[dD][89a-fA-F][0-9a-fA-F]{2}|.)`)

// wholeCharacter replaces half a character, where a client cut a text, by U+FFFD.
func wholeCharacter(escape []byte) []byte {
	if len(escape) == len(`\ud83d`) {
		return []byte(`\ufffd`)
	}
	return escape
}

// embedded lists embedded structs, which are no members of a document.
var embedded = strings.NewReplacer("claim.", "", "queryParameters.", "", "WorkflowStart.", "", "RunReplay.", "")

// misfit explains why a document could not be decoded.
func misfit(err error) error {
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong) && wrong.Field != "":
		path := embedded.Replace(wrong.Field)
		return problem.New(intents.SchemaInvalid, "/"+strings.ReplaceAll(path, ".", "/"), "must be a JSON "+jsonType(wrong))
	case errors.As(err, &wrong):
		return problem.New(intents.SchemaInvalid, "", "the body must be a JSON object")
	case err != nil:
		return problem.New(intents.SchemaInvalid, "", "the body has members that this route does not know")
	}
	return nil
}

func jsonType(e *json.UnmarshalTypeError) string {
	switch e.Type.Kind().String() {
	case "string":
		return "string"
	case "bool":
		return "boolean"
	case "int":
		return "number"
	default:
		return "object"
	}
}

// maxMember bounds a member name in a refusal's pointer, in bytes.
const maxMember = 64

// unknownMember finds a member of a document that does not exist in the type it is decoded into:
// its position, and the existing members.
func unknownMember(t reflect.Type, doc json.RawMessage, at string) (pointer, known string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	var members map[string]json.RawMessage
	if t.Kind() != reflect.Struct || json.Unmarshal(doc, &members) != nil {
		return "", ""
	}
	fields := membersOf(t)
	for _, name := range slices.Sorted(maps.Keys(members)) {
		here := at + "/" + escaped(name)
		of, ok := fields[name]
		if !ok {
			return here, strings.Join(slices.Sorted(maps.Keys(fields)), ", ")
		}
		if pointer, known = unknownMember(of, members[name], here); pointer != "" {
			return pointer, known
		}
	}
	return "", ""
}

// membersOf returns the members of a struct by their names in JSON, including embedded ones.
func membersOf(t reflect.Type) map[string]reflect.Type {
	out := map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "" && name != "-" {
			out[name] = f.Type
		}
	}
	return out
}

// escaped returns a name as a token of a JSON Pointer.
func escaped(name string) string {
	return schemas.Escape(visible.Cut(name, maxMember))
}
