package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents/catalog"
)

// requiring asks for so many members.
func requiring(n int) string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf(`"%x"`, i)
	}
	return `"required":[` + strings.Join(names, ",") + `]`
}

// TestSchemaBombs: a planner that was misled asks for a shape, and a skill server
// declares an output, by which each of 14,000 items lacks 15,000 members or more. Writ
// refuses the data, goes on, and comes up again.
func TestSchemaBombs(t *testing.T) {
	t.Parallel()
	shape := `{"$defs":{"r":{` + requiring(620) + `}},"items":{"allOf":[` + strings.TrimSuffix(strings.Repeat(`{"$ref":"#/$defs/r"},`, 25), ",") + `]}}`
	items := json.RawMessage(`[` + strings.TrimSuffix(strings.Repeat("{},", 14_000), ",") + `]`)
	for name, tt := range map[string]struct{ shape, output string }{
		"return_spec":   {shape: shape},
		"output schema": {shape: "array", output: `{"items":{` + requiring(30_000) + `}}`},
	} {
		t.Run(name, func(t *testing.T) {
			m := &mind{
				plan: func(in planning) model.Call {
					return steps(step(in.FirstStep, "weigh the parcels", "parcel_weigh", 0, tt.shape))
				},
				act: func(in working) action {
					if len(in.Calls) == 0 {
						return use("parcel_weigh", "{}")
					}
					return finish
				},
				script: func(scripting) string {
					return "import json\nprint(json.dumps(json.load(open(input_file))))"
				},
			}
			srv := serveSkills(t, skill{name: "parcel_weigh", about: "Weighs parcels.", output: tt.output, do: always(items)})
			x := boot(t, m, srv.url)
			id := x.ask(accepted)
			if v := x.finished(id); v.Status != catalog.PlanFailed {
				t.Errorf("the plan is %s", v.Status)
			}
			if srv.count("parcel_weigh") == 0 {
				t.Error("the data was never there")
			}
			x.end(syscall.SIGTERM)
			x.start()
			if status, p := x.call(x.as("local"), http.MethodGet, "/readyz", nil, nil); status != http.StatusOK {
				t.Errorf("ready: HTTP %d %+v", status, p)
			}
		})
	}
}
