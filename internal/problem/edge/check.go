package edge

import (
	"crypto/rand"
	"encoding/hex"
	"mime"
	"net/http"
	"regexp"
	"strings"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/problem"
)

// Check refuses a request because of its header, before its body is read. It returns nil if the
// header is valid. Bodies must be JSON and not compressed, so that none exceeds its stated length.
// Forms and plain text, which any web page can send for its visitor, are refused.
func Check(r *http.Request) *problem.Problem {
	size := len(r.RequestURI)
	for name, values := range r.Header {
		for _, v := range values {
			size += len(name) + len(v)
		}
	}
	if size > refuseHeader {
		return refuse(http.StatusRequestHeaderFieldsTooLarge, intents.PayloadTooLarge, "path and header have more than 32 KiB", "send less in the header")
	}
	if e := r.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return refuse(http.StatusUnsupportedMediaType, intents.SchemaInvalid, "compressed bodies are not accepted", "send it without Content-Encoding")
	}
	if strings.Contains(r.Header.Get("Range"), ",") {
		return refuse(http.StatusRequestedRangeNotSatisfiable, intents.SchemaInvalid, "a request asks for one range", "ask for one range, or for all of it")
	}
	if t := r.Header.Get("Content-Type"); t != "" && r.ContentLength != 0 && !isJSON(t) {
		return refuse(http.StatusUnsupportedMediaType, intents.SchemaInvalid, "the Content-Type says that the body is not JSON", "send Content-Type: application/json")
	}
	return nil
}

func refuse(status int, code intents.Code, detail, hint string) *problem.Problem {
	p := problem.New(code, "", detail)
	p.Status, p.Hint = status, hint
	return p
}

func isJSON(contentType string) bool {
	t, _, err := mime.ParseMediaType(contentType)
	return err == nil && (t == "application/json" || strings.HasPrefix(t, "application/") && strings.HasSuffix(t, "+json"))
}

// traceparent is W3C trace context: version, trace id, parent, flags.
var traceparent = regexp.MustCompile(`^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}`)

// TraceID is the trace of a request: that of its Traceparent, or a new one.
func TraceID(r *http.Request) string {
	if m := traceparent.FindStringSubmatch(r.Header.Get("Traceparent")); m != nil && m[1] != "00000000000000000000000000000000" {
		return m[1]
	}
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
