package router_test

import (
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// A policy that fails or is too slow at the release judges nothing: the intent is not released, and
// stays held.
func TestReleaseWithoutAnAnswer(t *testing.T) {
	w := rules(t, `{"id": "ext.ours", "reason": "We want to know.", "approvers": ["ben"]} if input.intent.type == "skill.call"

torn := 1 if count(input.approvals) > 0

torn := 2 if count(input.approvals) > 0

# METADATA
# title: Torn
# description: It cannot say.
# custom:
#   id: ext.torn
hold contains {"id": "ext.torn", "reason": "Torn."} if torn == 3
`)
	x := releaseWorld{w, started(w, catalog.Once), nil}
	x.held = w.Want(x.task.Call("feed", `{}`), intents.ApprovalRequired)
	w.Want(x.says("ben", catalog.DecisionApprove), intents.Overloaded)
	w.Want(x.outcome(), intents.ApprovalRequired)
}
