package node

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/router/recorder"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/sqlite"
	"aob.dev/writ/upkeep"
)

// TestSetAsideIsReported: of a record that an earlier process has set aside readyz, the metrics, what the doctor
// reads, and fsck say the position, and intents are taken.
func TestSetAsideIsReported(t *testing.T) {
	c := newWrist()
	cfg := c.config(t.TempDir())
	n, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(run(t, n)(), n.Close()); err != nil {
		t.Fatal(err)
	}
	const at = 4711 // of no record of this log, which the recorder could project again
	d, err := sqlite.OpenDocuments(t.Context(), datadir.DocumentsFile(cfg.Dir), storage.NewCheck(storage.DefaultDimension), 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = d.Create(t.Context(), storage.SystemTenant, storage.IndexEvents, storage.Document{
		ID: "000000004711-aside", Position: at,
		Body: []byte(`{"event_id":"000000004711-aside","tenant_id":"system","event_type":"` + recorder.EventAside + `","payload":{},"ts":"` + time.Now().UTC().Format(time.RFC3339) + `","position":4711}`),
	})
	if err := errors.Join(err, d.Close()); err != nil {
		t.Fatal(err)
	}

	if n, err = Open(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	stop := run(t, n)
	if err := tenantPut(t.Context(), n, "later"); err != nil {
		t.Error(err)
	}
	if err := n.recorder.Reach(t.Context(), n.journal.Next()); err != nil {
		t.Fatal(err)
	}
	n.look(t.Context())
	if code, status, up := readyz(t, n); code != http.StatusOK || status != "degraded" || len(up) != 1 || up[0].Name != conditionAside || !strings.Contains(up[0].Reason, "4711") {
		t.Errorf("%d %s %+v", code, status, up)
	}
	for _, m := range n.recorderMetrics() {
		if v := m.Values(); m.Name == "writ_recorder_set_aside" && v[""] != 1 {
			t.Errorf("%s %v", m.Name, v)
		}
	}
	if up, err := datadir.ReadConditions(cfg.Dir); err != nil || len(up) != 1 || up[0].Name != datadir.ConditionAside {
		t.Errorf("the doctor reads %+v %v", up, err)
	}
	if err := errors.Join(stop(), n.Close()); err != nil {
		t.Error(err)
	}
	if h, err := upkeep.Fsck(t.Context(), cfg.Dir, nil); err != nil || !h.OK || !slices.Equal(h.SetAside, []int64{at}) {
		t.Errorf("%v, %v, set aside %v", err, h.FirstBad, h.SetAside)
	}
}
