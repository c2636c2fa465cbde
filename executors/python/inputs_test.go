package python_test

import (
	"strings"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/executortest"
)

// TestJoin: a script finds several inputs, inline and in files, as members of one object.
// What is not one JSON document is no member: it could stand for another.
func TestJoin(t *testing.T) {
	b, e := open(t)
	put := func(text string) intents.Input {
		t.Helper()
		f, err := b.Put(t.Context(), scope, strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return intents.Input{Pointer: "/inputs/s2", Ref: f.ID, SHA256: f.SHA256, Size: f.Size}
	}
	script := "import json\nd = json.load(open(input_file))\nnames = {r['id']: r['name'] for r in d['s2']}\nprint(json.dumps([names[i] for i in d['s1']]))"
	join := func(second intents.Input) executortest.Intent {
		in := exec(catalog.ExecPython{Script: script, Inputs: map[string]string{"s1": intents.Digest(nil), "s2": "f"}})
		first := []byte(`[2,1]`)
		in.Ticket.Inputs = []intents.Input{{Pointer: "/inputs/s1", Value: first, SHA256: intents.Digest(first), Size: 5}, second}
		return in
	}
	rows := `[{"id":1,"name":"one"},` + strings.Repeat("\n", 70_000) + `{"id":2,"name":"two"}]`
	var got catalog.ExecPythonResult
	r := e.Must(t, join(put(rows)), &got)
	if text := strings.ReplaceAll(string(got.Output), " ", ""); text != `["two","one"]` {
		t.Errorf("output %s", text)
	}
	if n := executortest.EventPayload(t, r, "python_script.executed")["input_bytes"]; n != float64(len(`{"s1":[2,1],"s2":}`)+len(rows)) {
		t.Errorf("%v bytes went in", n)
	}
	for name, text := range map[string]string{
		"another member": `[],"s1":[1]`, "lines": "{}\n{}", "text": "id,name", "nothing": "", "cut off": `[{"id":1}`, "closed twice": "[]]",
	} {
		if r := e.Do(t, join(put(text))); r.Code != intents.MalformedArgs || !strings.Contains(r.Reason, "s2 is not one JSON document") || len(r.Events) != 0 {
			t.Errorf("%s: %s %s", name, r.Code, r.Reason)
		}
	}
}
