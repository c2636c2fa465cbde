package agentic

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents/catalog"
)

func TestIdentify(t *testing.T) {
	loaded := map[string]catalog.Manifest{}
	for _, m := range []catalog.Manifest{manifestOf("crm", "close"), manifestOf("git", "close"), manifestOf("git", "log"), {Name: "old", Endpoint: "crm"}} {
		loaded[m.Name] = m
	}
	steps := []catalog.PlanStep{{Skills: []string{"log", "git.close", "old"}}, {Skills: []string{"close", "missing"}}}
	(&planning{loaded: loaded}).identify(planArgs{Steps: steps})
	want := []catalog.PlanStep{{Skills: []string{"git.log", "git.close", "old"}}, {Skills: []string{"close", "missing"}}}
	if d := cmp.Diff(want, steps); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
