package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
)

// A tenant that fills its share of the running batches delays no other: four such tenants leave
// places for a fifth.
func TestBatchShares(t *testing.T) {
	e := open(t)
	came, more := make(chan struct{}, 100), make(chan struct{})
	find, usual := find(e), e.Bus.Executor("skill.find")
	e.Bus.On("skill.find", func(ctx context.Context, c routertest.Call) intents.Report {
		came <- struct{}{}
		<-more
		return usual(ctx, c)
	})
	of := func(tenant string) []byte {
		o := find
		o.Tenant, o.Key = tenant, catalog.RandomKey()
		return e.Sign(o)
	}
	var all sync.WaitGroup
	begin := func(tenant string, n int) {
		for range n {
			raw := of(tenant)
			all.Go(func() {
				if w := e.batch("", raw); w.Code != http.StatusOK {
					t.Errorf("%s: %d %s", tenant, w.Code, w.Body)
				}
			})
		}
		for range n {
			<-came
		}
	}
	full := func(tenant string) {
		if w := e.batch("", of(tenant)); w.Header().Get("Retry-After") == "" {
			t.Errorf("%d: is not told when to come again", w.Code)
		} else {
			refused(t, w, intents.Overloaded)
		}
	}
	for i := range 4 {
		tenant := fmt.Sprintf("t%d", i)
		e.Want(e.Admin("admin.put", catalog.AdminPut{New: &catalog.Tenant{ID: tenant}}), intents.OK)
		begin(tenant, 14) // a quarter, of which a key leaves some
		full(tenant)
	}
	begin("default", 4) // half of what is left
	full("default")
	close(more)
	all.Wait()
	begin("t0", 14) // nothing stays taken
	all.Wait()
}
