package httpapi

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/problem"
	"aob.dev/writ/internal/problem/edge"
)

const traceKey = "trace_id"

// guard gives each request a trace and refuses what no handler needs to see.
func guard(c *gin.Context) {
	trace := edge.TraceID(c.Request)
	c.Set(traceKey, trace)
	c.Header("X-Trace-Id", trace)
	c.Header("X-Content-Type-Options", "nosniff")
	if p := edge.Check(c.Request); p != nil {
		p.TraceID = trace
		p.Write(c.Writer)
		c.Abort()
	}
}

// tiles serves the log and turns what its handler refuses into problems.
func (s *server) tiles(h http.Handler) gin.HandlerFunc {
	return func(c *gin.Context) {
		w := &statusWriter{ResponseWriter: c.Writer}
		h.ServeHTTP(w, c.Request)
		switch w.refused {
		case 0:
		case http.StatusNotFound:
			s.refuse(c, problem.New(intents.NotFound, "", "the log has no such resource"))
		case http.StatusInternalServerError:
			s.refuse(c, problem.New(intents.Internal, "", ""))
		default:
			p := problem.New(intents.SchemaInvalid, "", http.StatusText(w.refused))
			p.Status = w.refused
			s.refuse(c, p)
		}
	}
}

// statusWriter keeps a refusal back: its status, without the prose.
type statusWriter struct {
	http.ResponseWriter
	refused int
}

func (w *statusWriter) WriteHeader(status int) {
	if status >= http.StatusBadRequest {
		w.refused = status
		w.Header().Del("Content-Length")
		return
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusWriter) Write(b []byte) (int, error) {
	if w.refused != 0 {
		return len(b), nil
	}
	return w.ResponseWriter.Write(b)
}
