package gateway

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"reflect"
	"strings"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/problem"
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
	raw, err := io.ReadAll(c.Request.Body)
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, problem.New(intents.PayloadTooLarge, "", "the body has more than 1 MiB")
	case err != nil:
		return nil, problem.New(intents.SchemaInvalid, "", "the body ends early")
	case len(raw) == 0:
		return nil, problem.New(intents.SchemaInvalid, "", "the body must be a JSON object")
	}
	canonical, err := intents.Canonical(raw)
	if err != nil {
		var r *intents.Refusal
		if errors.As(err, &r) {
			return nil, problem.New(intents.SchemaInvalid, r.Pointer, "the body is not strict JSON: "+r.Reason)
		}
		return nil, problem.New(intents.SchemaInvalid, "", "the body is not strict JSON")
	}
	c.Set(bodyDigest, intents.Digest(canonical))
	return canonical, nil
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
