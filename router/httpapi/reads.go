package httpapi

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/gateway/readapi"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/problem"
	"aob.dev/writ/internal/problem/edge"
	"aob.dev/writ/router"
	"aob.dev/writ/storage"
)

// visitor is a person's read. Every route that a person reads is one (server.read).
type visitor struct {
	*gin.Context
	*router.Reader
	s    *server
	line AccessLine
}

// read adds a route that a person reads, with the capability that it needs; empty: none. answer
// returns what is sent as JSON, or nil if it has answered. The read is in the access log, however
// it ends.
func (s *server) read(r *edge.Routes, path, capability string, answer func(*visitor) (any, error)) {
	r.GET(path, func(c *gin.Context) {
		v := &visitor{Context: c, s: s, line: AccessLine{At: s.now(), RequestID: edge.Trace(c), Route: path}}
		r.Handle(func(*gin.Context) error {
			token, ok := strings.CutPrefix(c.GetHeader("Authorization"), "Bearer ")
			if !ok {
				return intents.Refuse(intents.Unauthorized, "", "a read carries an API key (X-Api-Key), where the gateway runs too, or a grant (Authorization: Bearer)")
			}
			var err error
			if v.Reader, err = s.cfg.Router.Reader(token, capability); err != nil {
				return err
			}
			g := v.Grant
			v.line.Tenant, v.line.User, v.line.Key, v.line.Own = g.Tenant, g.Subject, intents.CallerOf(g.Act.Client), true
			if g.Standing() && c.Param("id") == "" {
				return intents.Refuse(intents.GrantInvalid, "", "a standing grant reads its plan and nothing else")
			}
			out, err := answer(v)
			if err == nil && out != nil {
				c.JSON(http.StatusOK, out)
			}
			return v.failure(err)
		})(c)
		v.line.Status = c.Writer.Status()
		s.cfg.Access.Write(c.Request.Context(), v.line)
	})
}

// failure is the refusal of a read that has failed.
func (v *visitor) failure(err error) error {
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return problem.New(intents.NotFound, "", "not found, or not visible to this caller")
	case errors.Is(err, storage.ErrSlow):
		return intents.Refuse(intents.Overloaded, "", "the query took too long: narrow it, by a shorter time or one more term")
	case errors.Is(err, storage.ErrUnavailable):
		return late("the documents do not answer")
	}
	return err
}

// sees refuses a thing that the person may not see, as missing. What belongs to somebody else also
// needs an audit.read of the subject; that of a plan covers its intents.
func (v *visitor) sees(t router.Thing, subject string) error {
	v.line.Subject, v.line.Own = subject, t.Owner == v.Grant.Subject
	switch {
	case !v.Sees(t):
		return storage.ErrNotFound
	case v.line.Own:
		return nil
	case t.Plan != "" && subject != catalog.SubjectPlans:
		subject = catalog.SubjectPlan(t.Plan)
	}
	return v.audited(subject)
}

// auditLife is how long an audit.read is good for.
const auditLife = time.Hour

// audited refuses to show what belongs to somebody else, unless the record has an audit.read of
// this person and subject from the last hour.
func (v *visitor) audited(subject string) error {
	v.line.Subject, v.line.Own = cmp.Or(v.line.Subject, subject), false
	ctx := v.Request.Context()
	if id := v.GetHeader(readapi.HeaderAudit); intents.IsDigest(id) {
		e, err := v.find(ctx, id)
		at, bad := time.Parse(time.RFC3339Nano, e.At)
		switch {
		case errors.Is(err, storage.ErrNotFound):
		case err != nil:
			return err
		case bad == nil && e.Type == catalog.TypeAuditRead && e.UserID == v.Grant.Subject && v.s.now().Sub(at) < auditLife:
			a, err := v.s.cfg.Router.Intent(ctx, e.Position)
			if err != nil {
				return err
			}
			var got catalog.AuditRead
			if a.Outcome != nil && a.Outcome.Status == intents.Done && intents.UnmarshalStrict(a.Outcome.Result, &got) == nil && got.Subject == subject {
				return nil
			}
		}
	}
	v.Header(readapi.HeaderSubject, subject)
	return problem.New(intents.AuditRequired, "", "")
}

// current waits until the documents have every record that was durable when the read began, as far
// as this router or the gateway knows.
func (v *visitor) current() error {
	ctx, cancel := context.WithTimeout(v.Request.Context(), indexWait)
	defer cancel()
	position := v.s.cfg.State.View().Position() + 1
	if after, err := strconv.ParseInt(v.GetHeader(readapi.HeaderAfter), 10, 48); err == nil {
		position = max(position, after+1)
	}
	if err := v.s.cfg.Recorder.Reach(ctx, position); err != nil {
		return late("the documents are behind the record: whether there is such a thing is not known yet")
	}
	return nil
}

// whose is the user whose documents a list has; empty: all of the tenant's.
func (v *visitor) whose(all bool) (string, error) {
	switch {
	case !all:
		return v.Grant.Subject, nil
	case !v.Oversees():
		return "", intents.Refuse(intents.RBACForbidden, "", "only those who have "+catalog.CapabilityAudit+" see what others of the tenant did")
	}
	v.line.Own = false
	return "", nil
}
