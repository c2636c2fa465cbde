package router_test

import (
	"strings"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
)

// eraseUser has the operator of system disable a user of default, and erase the user.
func eraseUser(w *routertest.World, user string) *intents.Answer {
	w.Helper()
	w.Want(w.Admin("admin.put", catalog.AdminPut{Tenant: "default", User: &catalog.User{UserID: user, Roles: []string{"user"}, Disabled: true}}), intents.OK)
	return w.Admin("user.erase", catalog.UserErase{Tenant: "default", UserID: user, Reason: "the person asked for it"})
}

// TestEraseUser: every word of a user's plans, calls and refusals leaves the records, with one
// intent; nobody else's does, what people were asked about stays and is counted, and a restart
// makes the same state.
func TestEraseUser(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	for _, how := range []string{"complete", "failed", "cancel"} {
		_, end := w.Tell(how, "anas", how)
		end()
	}
	task := started(w, catalog.Once)
	w.Bus.On("skill.call", routertest.Always(routertest.Done(catalog.SkillCallResult{Output: []byte(`"anas-reply"`)})))
	w.Want(task.Call("feed", `{"name":"anas-name"}`), intents.OK)
	w.Want(task.Call("other", `{"name":"anas-refused"}`), intents.TaskScope)
	before := w.Records()
	if len(inRecords(w, "anas")) < 20 {
		t.Fatal("the test looks in the wrong place")
	}
	user := task.User
	if a := w.Want(w.Admin("user.erase", catalog.UserErase{Tenant: "default", UserID: user, Reason: "r"}), intents.MalformedArgs); !strings.Contains(a.Reason, "not disabled") {
		t.Errorf("%s", a.Reason)
	}
	a := w.Want(eraseUser(w, user), intents.OK)
	if where := inRecords(w, "anas"); len(where) > 0 {
		t.Errorf("words of the user are still in %v", where)
	}
	for i, was := range before {
		if is := w.Records()[i]; is.Digest() != was.Digest() {
			t.Errorf("record %d has another digest", i)
		}
	}
	result := routertest.Result[catalog.UserEraseResult](w, a)
	if result.Erased < 20 || result.Intents != result.Erased+retained(result, catalog.RetainedJudged) {
		t.Errorf("%+v", result)
	}
	after := w.Restart()
	after.Must(after.Dir.Err())
	after.Want(after.Admin("user.erase", catalog.UserErase{Tenant: "default", UserID: user, Reason: "again"}), intents.OK)
}

func retained(r catalog.UserEraseResult, why string) (n int64) {
	for _, x := range r.Retained {
		if x.Why == why {
			n += x.Intents
		}
	}
	return n
}
