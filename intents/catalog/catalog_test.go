package catalog

import (
	"bytes"
	"encoding/json"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents"
	"aob.dev/writ/schemas"
)

// at is when everything in the examples happens.
var at = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)

const digest = "sha256:8f434346648f6b96df89dda901c5176b10a6d83961dd3c1ac88b59b2dc327aa4"

var (
	accepted  = Ack{Accepted: true}
	reference = &Reference{FileID: "f_1", SizeBytes: 1_219_853, SHA256: digest, Sample: []string{"{"}}
	joined    = PlanStep{Step: 3, ID: "join", Task: "Join.", Skills: []string{}, Inputs: []int{1, 2}, After: []int{1}, Parallel: true, ReturnSpec: ReturnSpec{Shape: "integer", Reason: "asked for"}}
	specimen  = PlanStep{Step: 1, Task: "Find the strongest.", Skills: []string{"feed"}, InputFromStep: 1, ReturnSpec: ReturnSpec{Shape: "array<{place, magnitude: number}>", Reason: "ranking"}}
	failure   = &Failure{Reason: "max replan attempts reached", CompletedSteps: []int{1}, LastFailure: &LastFailure{Step: 2, Reason: "no rows"}}
	view      = PlanView{
		PlanID: "plan_1", TenantID: "default", UserID: "ana", SessionID: "s", TurnID: "t", Status: PlanFailed, Task: "Which?", Epoch: 1, Revision: 1,
		PlanDigest: digest, MaxSteps: MaxSteps, ReplanCount: 1,
		Steps:         []StepView{{PlanStep: specimen, Status: StepDone, Revision: 1, TaskID: "task_1", MemoryKey: "default:s:task_1:strongest", Validated: true, FailureReason: "none", Suggestion: "none", StartedAt: &at, FinishedAt: &at}},
		History:       []Replan{{Attempt: 1, Trigger: "insufficient", FailedStep: 2, Reason: "no rows", RevisedAt: at}},
		IntentHistory: []PastIntent{{Step: 2, IntentID: digest, Type: "skill.call", Effect: Once, Args: json.RawMessage(`{}`), Status: "failed", Code: intents.ExecutorFailed}},
		Failure:       failure, CreatedAt: at, CompletedAt: &at,
	}
	withoutTexts = PlanView{PlanID: "plan_1", TenantID: "default", UserID: "ana", Status: PlanPending, MaxSteps: MaxSteps, Steps: []StepView{}, History: []Replan{}, CreatedAt: at}
	running      = PlanView{
		PlanID: "plan_1", TenantID: "default", UserID: "ana", Status: PlanExecuting, Revision: 1, PlanDigest: digest, MaxSteps: MaxNodes, History: []Replan{}, CreatedAt: at,
		Run:   &RunView{RunID: "plan_1", WorkflowID: "lead", Version: "1.0.0", Digest: digest, Priority: "high", MaxDays: 3, ReplayOf: "plan_0", FromNode: "parse", Mode: ReplayShadow, RepeatEffects: true},
		Steps: []StepView{{PlanStep: PlanStep{Step: 1, ID: "parse", Task: "function", Skills: []string{"crm.parse"}, Parallel: true, ReturnSpec: specimen.ReturnSpec}, Status: StepSkipped, Revision: 1, Type: "function", Attempts: 1, RetryAt: &at, Replayed: 7}},
	}
	turn    = Turn{Role: "user", Content: "Hello", Timestamp: at, IntentSummary: "greets"}
	session = Session{SessionID: "s", UserID: "ana", Status: "active", TTL: &at, StartedAt: at, LastActive: at, Agent: "general", TurnHistory: []Turn{turn}, WorkflowState: json.RawMessage(`{"page":2}`)}
	persona = Persona{Name: "Ada", SystemPrompt: "Be brief.", Tone: "calm", Language: "en"}
	jwk     = intents.JWK{KID: strings.Repeat("a", 43), Kty: "OKP", Crv: "Ed25519", X: strings.Repeat("b", 43), Alg: "EdDSA", Use: "sig"}
)

// example holds values of a row's Go types with every member set (in one of the
// values, where members exclude each other), and those with as few as possible.
type example struct {
	args, results []any
}

var feed = Manifest{Name: "feed", Description: "A feed.", InputSchema: json.RawMessage(`{}`), OutputSchema: json.RawMessage(`{}`), ExecutionMode: "sync", Endpoint: "quakes", Digest: digest, Effect: Pure}

var examples = map[string]example{
	"plan.open": {[]any{PlanOpen{PlanID: "plan_2", Task: "Sell.", Agent: "shop"}, PlanOpen{PlanID: "plan_1", Task: "Which?"}}, []any{withoutTexts}},
	"plan.close": {[]any{
		PlanClose{PlanID: "plan_1", Epoch: 1, Status: "complete", Response: "These."},
		PlanClose{PlanID: "plan_1", Epoch: 1, Status: "failed", Failure: failure},
	}, []any{view}},
	"plan":       {[]any{Plan{PlanID: "plan_1", Epoch: 1, Revision: 1, Steps: []PlanStep{specimen, joined, {Step: 3, Task: "sell", Skills: []string{}, Agent: "shop", ReturnSpec: specimen.ReturnSpec}}}}, []any{withoutTexts}},
	"plan.claim": {[]any{PlanClaim{PlanID: "plan_1", Epoch: 1, Driver: "d1"}}, []any{view, PlanView{PlanID: "plan_1", TenantID: "default", UserID: "ana", Status: PlanPending, Task: "Which?", MaxSteps: MaxSteps, Steps: []StepView{}, History: []Replan{}, Response: "These.", CreatedAt: at}}},
	"step": {
		[]any{Step{PlanID: "plan_1", PlanDigest: digest, Step: 1, Epoch: 1, TaskID: "task_1", JWK: jwk, PoP: "e30.." + strings.Repeat("A", 86), Deadline: "2026-11-20T10:05:00Z"}},
		[]any{StepResult{TaskID: "task_1", InputKey: "default:s:task_1:strongest", Plan: view}, StepResult{TaskID: "task_1", Plan: withoutTexts}},
	},
	"agent.ask": {
		[]any{
			AgentAsk{Agent: "spoons", Input: "Which?", Context: AskContext{"s", "en", "Graz", "sold two"}, PlanID: "plan_1", Epoch: 1, Parent: "task_1", TaskID: "task_2", JWK: jwk, PoP: "e30.." + strings.Repeat("A", 86), Deadline: "2026-11-20T10:05:00Z"},
			AgentAsk{Agent: "spoons", Input: "Which?", Context: AskContext{EpisodeID: "s"}, PlanID: "plan_1", Epoch: 1, Parent: "task_1", TaskID: "task_2", JWK: jwk, PoP: "e30.." + strings.Repeat("A", 86), Deadline: "2026-11-20T10:05:00Z"},
		},
		[]any{AgentAskResult{TaskID: "task_2", Skills: []string{"spoon.buy"}}, AgentAskResult{TaskID: "task_2", Skills: []string{}}},
	},
	"step.finish": {[]any{
		StepFinish{TaskID: "task_1", Status: "done", MemoryKey: "default:s:task_1:strongest"},
		StepFinish{TaskID: "task_1", Status: "done", Reply: "These."},
		StepFinish{TaskID: "task_1", Status: "done", Intent: digest},
		StepFinish{TaskID: "task_1", Status: "insufficient", Reason: "no rows", Suggestion: "ask the other feed"},
		StepFinish{TaskID: "task_1", Status: "held", Reply: "one waits"},
		StepFinish{TaskID: "task_1", Status: "unavailable", Reason: "it does not answer"},
	}, []any{withoutTexts}},
	"workflow.start": {[]any{WorkflowStart{WorkflowID: "lead", Inputs: json.RawMessage(`{"file":"cas://sha256:1"}`), Priority: "high", RunID: "plan_1"}, WorkflowStart{WorkflowID: "lead", Inputs: json.RawMessage(`{}`)}}, []any{running, withoutTexts}},
	"node.skip":      {[]any{NodeSkip{PlanID: "plan_1", Epoch: 1, Step: 2}}, []any{withoutTexts}},
	"run.replay": {
		[]any{RunReplay{RunID: "plan_1", FromNode: "parse", Mode: ReplayFreeze, RepeatEffects: true}, RunReplay{RunID: "plan_1", FromNode: "parse", Mode: ReplayShadow}},
		[]any{running, withoutTexts},
	},
	"cancel":   {[]any{Cancel{PlanID: "plan_1", Reason: "enough"}, Cancel{PlanID: "plan_1"}}, []any{view}},
	"plan.get": {[]any{PlanGet{PlanID: "plan_1"}}, []any{PlanGetResult{Plan: view}}},
	TypeAuditRead: {
		[]any{AuditRead{SubjectPlan("plan_1")}, AuditRead{SubjectIntent(digest)}, AuditRead{SubjectPlans}, AuditRead{SubjectBundle}},
		[]any{AuditRead{SubjectPlan("plan_1")}},
	},
	"transcript.get": {[]any{TranscriptGet{IntentIDs: []string{digest}}}, []any{
		TranscriptGetResult{SHA256: digest},
		TranscriptGetResult{Calls: []TranscriptCall{
			{CallSummary: CallSummary{Step: 1, IntentID: digest, Occurrence: 1, Call: "2.0", Type: "skill.call", Status: "done"}, Args: json.RawMessage(`{}`), Code: intents.OK, Reason: "r", Result: json.RawMessage(`1`)},
			{CallSummary: CallSummary{Step: 1, IntentID: digest, Call: "1.0", Type: "skill.call", Status: "held"}, Args: json.RawMessage(`{}`)},
		}},
	}},
	"write_memory": {[]any{WriteMemory{Label: "strongest", Data: json.RawMessage(`[1]`), Scope: "user"}, WriteMemory{Label: "strongest", From: digest}}, []any{WriteMemoryResult{Key: "default:s:task_1:strongest", SizeBytes: 3, Validated: true}}},
	"read_memory": {
		[]any{ReadMemory{Key: "default:s:task_1:strongest", Confirm: true}, ReadMemory{Key: "default:s:task_1:strongest"}},
		[]any{ReadMemoryResult{Key: "default:s:task_1:strongest", Data: json.RawMessage(`null`)}, ReadMemoryResult{Key: "default:s:task_1:strongest", Reference: reference}},
	},
	"memory.query": {[]any{MemoryQuery{Text: "quakes", TopK: 5, Scope: "tenant"}, MemoryQuery{Text: "quakes"}, MemoryQuery{Mode: SQL, Text: "SELECT 1"}}, []any{MemoryQueryResult{Hits: []MemoryHit{{Key: "default:s:task_1:strongest", Scope: "session", Text: "[1]", Source: "feed", CreatedAt: at, Score: 0.5}}, By: ByVectors, Embedder: "hashed"}, MemoryQueryResult{Hits: []MemoryHit{}, By: ByWords, Reason: "there is no embedder"}, MemoryQueryResult{ReadMemoryResult: &ReadMemoryResult{Key: "m_1", Data: json.RawMessage(`"Hello."`)}}, MemoryQueryResult{ReadMemoryResult: &ReadMemoryResult{Key: "default:s:t:l", Reference: reference}}, MemoryQueryResult{Rows: []map[string]any{{"n": "1"}}}, MemoryQueryResult{Hits: []MemoryHit{{Key: "s:trip", Scope: ScopeMoment, Text: "A trip.", CreatedAt: at, Edges: []Edge{{"s:trip", "s:plan", "builds_on", 0.5}}}}, By: ByEdges}}},
	"write_temp":   {[]any{WriteTemp{Data: json.RawMessage(`"a"`)}, WriteTemp{From: "cas://" + digest}}, []any{WriteTempResult{FileID: "f_1", SizeBytes: 1, SHA256: digest}}},
	"read_lines":   {[]any{ReadLines{FileID: "f_1", Start: 0, N: 1000}}, []any{ReadLinesResult{Lines: []string{"a"}, More: true}}},
	"exec_python": {
		[]any{ExecPython{Script: "print(1)", Input: json.RawMessage(`[]`), TimeoutSec: 30}, ExecPython{Script: "print(1)", From: "f_1"}, ExecPython{Script: "print(1)", Inputs: map[string]string{"s1": "f_1", "s2": digest}}, ExecPython{Script: "print(1)"}},
		[]any{ExecPythonResult{Output: json.RawMessage(`1`)}, ExecPythonResult{Reference: reference}},
	},
	"kb.index": {
		[]any{KBIndex{Title: "Ports", Data: json.RawMessage(`"Harbours."`), MediaType: "text/plain", Metadata: map[string]string{"year": "2026"}, Scope: KnowledgeOfTenant, Supersedes: digest}, KBIndex{Title: "Ports", From: digest, MediaType: "application/pdf"}},
		[]any{KBIndexResult{DocumentID: digest, Chunks: 1, SizeBytes: 9, Embedder: "hashed", Existed: true}, KBIndexResult{DocumentID: digest, Chunks: 1, SizeBytes: 9}},
	},
	"kb.search": {
		[]any{KBSearch{Q: "ports", K: new(50), Filters: map[string]string{"tenant": "default", "year": "2026"}, Hybrid: new(false)}, KBSearch{Q: "ports"}},
		[]any{KBSearchResult{Hits: []KBHit{{digest, digest, 1, "Ports", "Harbours.", "text/plain", KnowledgeOfUser, map[string]string{"year": "2026"}, digest, KBScores{2, 0.5, 0.1, new(0.9)}}}, By: []string{ByWords, ByVectors}, Embedder: "hashed", Reranker: "m", Reason: "the reranker does not answer"}, KBSearchResult{Hits: []KBHit{{DocumentID: digest, ChunkID: digest, Title: "Ports", Text: "Harbours.", MediaType: "text/plain", Scope: KnowledgeOfUser}}, By: []string{ByWords}}},
	},
	"kb.remove":        {[]any{KBRemove{digest, KnowledgeOfTenant}, KBRemove{DocumentID: digest}}, []any{KBRemoveResult{digest}}},
	"cache.invalidate": {[]any{CacheInvalidate{CacheSkill, "feed"}}, []any{CacheInvalidateResult{3}}},

	"skill.find":    {[]any{SkillFind{Query: "quakes", Limit: 50}, SkillFind{Query: "quakes"}}, []any{SkillFindResult{Skills: []SkillHit{{Name: "feed", Description: "A feed."}}}}},
	"skill.load":    {[]any{SkillLoad{Skill: "feed"}, SkillLoad{Skills: []string{"feed", "gone"}}}, []any{SkillLoadResult{Manifest: &feed}, SkillLoadResult{Skills: []Manifest{feed}, Unavailable: []string{"gone"}}}},
	"skill.call":    {[]any{SkillCall{Skill: "feed", Input: json.RawMessage(`{}`)}, SkillCall{Skill: "feed", From: digest}, SkillCall{Skill: "feed"}}, []any{SkillCallResult{Output: json.RawMessage(`[]`)}, SkillCallResult{Reference: reference}}},
	"resource.read": {[]any{ResourceRead{Skill: "crm.resources/read"}, ResourceRead{Skill: "crm.resources/read", URI: "a:b"}, ResourceRead{Skill: "crm.resources/read", Prompt: "p", Arguments: map[string]string{"a": "b"}}}, []any{SkillCallResult{Output: json.RawMessage(`[]`)}, SkillCallResult{Reference: reference, Content: []json.RawMessage{json.RawMessage(`{}`)}}}},
	"skill.connect": {
		[]any{SkillConnect{Link: "l"}, SkillConnect{Link: "l", RedirectURI: "https://writ.example/console/connected", Absent: true}, SkillConnect{Answer: "a"}},
		[]any{SkillConnectResult{Server: "crm", Address: "https://crm.example/mcp", Issuer: "https://login.example", Scopes: []string{"notes"}, Connected: true, AuthorizationURL: "https://login.example/a"}, SkillConnectResult{Server: "crm", Address: "a", Issuer: "i", Scopes: []string{}}},
	},
	TypeSkillDisconnect: {[]any{SkillDisconnect{Server: "crm", UserID: "ana"}, SkillDisconnect{Server: "crm"}}, []any{SkillDisconnectResult{Removed: true, Revoked: true}}},
	"graph.patch":       {[]any{GraphPatch{RunID: "plan_1", Patch: json.RawMessage(`{"patch_version":"0.1","add_nodes":[{"id":"tell","type":"function","fn":"mail.send","inputs":{"to":"${inputs.to}"},"retry":{"max":1,"backoff_sec":5},"timeout_sec":60}],"add_edges":[{"from":"CURRENT_NODE","to":"tell","condition":"true"}],"remove_edges":[{"from":"a","to":"b"}],"justification":"to tell"}`)}}, []any{withoutTexts}},
	"session.get":       {[]any{SessionRef{SessionID: "s"}, SessionRef{SessionID: "s", Limit: 20, Before: "m_0"}}, []any{session, Session{SessionID: "s", UserID: "u", Status: "active", StartedAt: at, LastActive: at, TurnHistory: []Turn{}, ResumedFrom: "r", Cursor: "m_0"}}},
	"session.create":    {[]any{SessionCreate{SessionID: "s", Agent: "general", TTLMinutes: 30}, SessionCreate{SessionID: "s"}}, []any{session}},
	"session.append":    {[]any{SessionAppend{SessionID: "s", Turns: []Turn{turn}}}, []any{session}},
	"session.update":    {[]any{SessionUpdate{SessionID: "s", WorkflowState: json.RawMessage(`{"page":3}`)}}, []any{session}},
	"session.close":     {[]any{SessionClose{SessionID: "s", Status: "COMPLETED"}}, []any{session}},
	"session.resume":    {[]any{SessionResume{SessionID: "s2", From: "s"}}, []any{session}},
	"soul.get":          {[]any{SoulGet{}}, []any{Soul{UserID: "ana", Persona: &persona, Policies: json.RawMessage(`{}`), UpdatedAt: &at}, Soul{}}},
	"soul.put":          {[]any{SoulPut{UserID: "ana", Persona: persona, Policies: json.RawMessage(`{}`)}, SoulPut{Persona: Persona{Name: "Ada"}}}, []any{Soul{UserID: "ana", Persona: &persona, Policies: json.RawMessage(`{}`), UpdatedAt: &at}}},
	"schedule.put": {
		[]any{SchedulePut{ID: "s", Agent: "general", Input: "Look.", Cron: "0 9 * * mon-fri", TimeZone: "Europe/Oslo"}, SchedulePut{Input: "Look.", At: "2026-11-21T09:00:00+01:00"}},
		[]any{ScheduleNext{ID: "s", Next: at}},
	},
	"schedule.list":   {[]any{struct{}{}}, []any{ScheduleCount{Schedules: 1}}},
	"schedule.delete": {[]any{ScheduleDelete{ID: "s"}}, []any{accepted}},
	"usage.report":    {[]any{UsageReport{[]Usage{{Agent: "producer", Model: "openai:m", Calls: 1, InputTokens: 9, OutputTokens: 1}}}}, []any{accepted}},
	"action":          {[]any{Action{Type: "open_page", Payload: json.RawMessage(`{"page":"/"}`)}, Action{Type: "wave"}}, []any{accepted}},
	"key.put":         {[]any{KeyPut{KeySet: "e30.e30.AA"}}, []any{accepted}},
	"admin.stop":      {[]any{AdminStop{Tenant: "default", All: true, Reason: "a leak"}, AdminStop{Agents: []string{"scout"}, Servers: []string{"crm"}}, AdminStop{Resume: true}}, []any{accepted}},
	"skill.approve":   {[]any{SkillApprove{Tenant: "default", Skill: "feed", Digest: digest, Effect: Pure}, SkillApprove{Skill: "feed", Digest: digest, Effect: Pure, CacheSeconds: 60, Shared: true}}, []any{accepted}},
	"grant.revoke":    {[]any{GrantRevoke{Tenant: "default", Sub: "ana", Before: "2026-11-20T10:00:00Z"}}, []any{accepted}},
	"record.erase":    {[]any{RecordErase{IntentID: digest, Position: 7, Parts: []string{ErasesEnvelope, ErasesResult, ErasesBlobs}, Reason: "asked for by the person"}, RecordErase{Tenant: "acme", IntentID: digest, Parts: []string{ErasesResult}, Reason: "r"}}, []any{EraseResult{Accepted: true, Remaining: RemainingCopies([]string{ErasesEnvelope})}}},
	"user.erase":      {[]any{UserErase{Tenant: "default", UserID: "ana", Reason: "asked for by the person"}, UserErase{UserID: "ana", Reason: "r"}}, []any{UserEraseResult{Accepted: true, Intents: 3, Erased: 1, Retained: []RetainedIntents{{"skill.call", RetainedHeld, 2}}, Remaining: UserRemaining()}, UserEraseResult{Accepted: true, Retained: []RetainedIntents{}, Remaining: UserRemaining()}}},
	"intent.resolve":  {[]any{IntentResolve{IntentID: digest, Status: "done", Reason: "seen at the bank"}}, []any{accepted}},
	"registry.push":   {[]any{RegistryPush{Tenant: "default", Revision: 7, Digest: digest, Bundle: "H4sI"}, RegistryPush{Revision: 7, Digest: digest}}, []any{accepted}},
	"agent.get":       {[]any{AgentGet{}}, []any{AgentGetResult{Agent: "shop", Text: "name: shop", TimeLimitSec: 300}, AgentGetResult{Agent: "general", TimeLimitSec: 300}, AgentGetResult{Others: []OtherAgent{{Agent: "shop", DisplayName: "Shop", Description: "Sells.", TimeLimitSec: 300}}}}},
	"policy.push":     {[]any{PolicyPush{Revision: 7, Digest: digest, Bundle: "H4sI"}}, []any{accepted}},
	"approval.ask": {[]any{
		ApprovalAsk{Title: "Which outlets shall I close?", Detail: "They lose money.", Items: []AskItem{{ID: "berlin", Text: "Berlin"}}, Approvers: []string{"ben"}},
		ApprovalAsk{Title: "Shall I go on?"},
	}, []any{ApprovalAskResult{Approved: []ApprovedItems{{UserID: "ben", At: "2026-11-20T10:00:00.000Z", Items: []string{"berlin"}}}}}},
	"hitl.approve": {[]any{
		Approve{IntentID: digest, Decision: DecisionApprove},
		Approve{IntentID: digest, RunID: "r", NodeID: "n", Decision: DecisionRequestChanges, Reason: "another day"},
		Approve{IntentID: digest, Decision: DecisionApprove, Items: []string{"berlin"}},
		Approve{IntentID: digest, Decision: DecisionEdit, Args: json.RawMessage(`{"n":1}`)},
	}, []any{
		ApproveResult{IntentID: digest, State: ApprovalPending, Approved: []string{"ben"}, Missing: []string{"writ.skill.once"}},
		ApproveResult{IntentID: digest, State: ApprovalEnded, Code: intents.ApprovalRejected, Reason: "no", Approved: []string{}},
	}},
	"admin.put": {[]any{
		AdminPut{Tenant: "default", APIKey: &APIKey{ID: "k1", Hash: digest, UserID: "local", MaxRoles: []string{"user"}, MayAssertUser: true, Revoked: true}},
		AdminPut{User: &User{UserID: "ana", Roles: []string{}, Disabled: true}},
		AdminPut{Role: &RoleData{Role: "user", Capabilities: []string{"skills:call:*", "memory:*", "*"}}},
		AdminPut{New: &Tenant{ID: "acme"}},
		AdminPut{Data: &Data{Key: "limits", Value: json.RawMessage(`null`)}},
	}, []any{accepted}},
}

func TestRowsHaveSchemas(t *testing.T) {
	for _, r := range Builtin().Rows() {
		args, err := r.ArgsSchema()
		if err != nil {
			t.Errorf("%s: %v", r.Type, err)
		} else if want := "https://aob.dev/schemas/intents/" + r.Type + ".json"; args.ID() != want {
			t.Errorf("%s: $id %s", r.Type, args.ID())
		}
		if _, err := r.ResultSchema(); err != nil {
			t.Errorf("%s: %v", r.Type, err)
		}
		if _, ok := examples[r.Type]; !ok {
			t.Errorf("%s: no example", r.Type)
		}
	}
	files, err := os.ReadDir("../../schemas/intents")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d schemas: %v", len(files), err)
	}
	for _, f := range files {
		typ := strings.TrimSuffix(strings.TrimSuffix(f.Name(), ".json"), ".result")
		if _, ok := Builtin().Lookup(typ); !ok {
			t.Errorf("%s: no row", f.Name())
		}
	}
}

// TestTypesFollowSchemas marshals every example and reads it back.
func TestTypesFollowSchemas(t *testing.T) {
	check := func(t *testing.T, s *schemas.Schema, v any) {
		t.Helper()
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range s.ValidateBytes(raw) {
			t.Errorf("%s: %s: %s in %s", s.ID(), x.Pointer, x.Reason, raw)
		}
		again := reflect.New(reflect.TypeOf(v))
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.DisallowUnknownFields()
		if err := dec.Decode(again.Interface()); err != nil {
			t.Errorf("%T: %v", v, err)
		}
		if diff := cmp.Diff(v, again.Elem().Interface()); diff != "" {
			t.Errorf("%T changed (-sent +read):\n%s", v, diff)
		}
	}
	for _, r := range Builtin().Rows() {
		t.Run(r.Type, func(t *testing.T) {
			args, err1 := r.ArgsSchema()
			result, err2 := r.ResultSchema()
			if err1 != nil || err2 != nil {
				t.Fatal(err1, err2)
			}
			for _, v := range examples[r.Type].args {
				check(t, args, v)
			}
			for _, v := range examples[r.Type].results {
				check(t, result, v)
			}
		})
	}
}

// TestAllFound: the largest number of skills that can be requested fits a result.
func TestAllFound(t *testing.T) {
	r, _ := Builtin().Lookup("skill.find")
	result, err := r.ResultSchema()
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{MaxFound, MaxFound + 1} {
		raw, err := json.Marshal(SkillFindResult{Skills: slices.Repeat([]SkillHit{{Name: "a", Description: "b"}}, n)})
		if err != nil {
			t.Fatal(err)
		}
		if wrong := result.ValidateBytes(raw); (len(wrong) > 0) != (n > MaxFound) {
			t.Errorf("%d skills: %+v", n, wrong)
		}
	}
}

// TestSchemasFollowTypes compares the members that a schema allows with those
// that the Go type has, at every level, and what both may leave out.
func TestSchemasFollowTypes(t *testing.T) {
	for _, r := range Builtin().Rows() {
		for _, kind := range []struct {
			id     string
			values []any
		}{{schemas.Base + "intents/" + r.Type + ".json", examples[r.Type].args}, {schemas.Base + "intents/" + r.Type + ".result.json", examples[r.Type].results}} {
			compare(t, kind.id, reflect.TypeOf(kind.values[0]), node{id: kind.id, tree: document(t, kind.id)})
		}
	}
}

// TestDataAt: the rows whose arguments have a member "from" say where its data go,
// and that is another member.
func TestDataAt(t *testing.T) {
	for _, r := range Builtin().Rows() {
		s, err := r.ArgsSchema()
		if err != nil {
			t.Fatal(err)
		}
		names := s.Part("").Members()
		if slices.Contains(names, "from") != (r.DataAt != "") || r.DataAt != "" && !slices.Contains(names, strings.TrimPrefix(r.DataAt, "/")) {
			t.Errorf("%s: %q, with members %v", r.Type, r.DataAt, names)
		}
	}
}

// node is a place in a schema document.
type node struct {
	id   string
	tree map[string]any
}

func document(t *testing.T, id string) map[string]any {
	t.Helper()
	s, err := schemas.Lookup(id)
	if err != nil {
		t.Fatal(err)
	}
	var tree map[string]any
	if err := json.Unmarshal(s.Source(), &tree); err != nil {
		t.Fatal(err)
	}
	return tree
}

// follow resolves $ref.
func (n node) follow(t *testing.T) node {
	t.Helper()
	ref, ok := n.tree["$ref"].(string)
	if !ok {
		return n
	}
	base, err1 := url.Parse(n.id)
	target, err2 := base.Parse(ref)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	fragment := target.Fragment
	target.Fragment = ""
	tree := document(t, target.String())
	for token := range strings.SplitSeq(strings.TrimPrefix(fragment, "/"), "/") {
		if token != "" {
			tree = tree[token].(map[string]any)
		}
	}
	return node{id: target.String(), tree: tree}.follow(t)
}

// compare walks a Go type and a schema side by side.
func compare(t *testing.T, path string, typ reflect.Type, n node) {
	t.Helper()
	n = n.follow(t)
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	switch {
	case typ == reflect.TypeFor[json.RawMessage](), typ == reflect.TypeFor[time.Time]():
		return
	case typ.Kind() == reflect.Slice:
		items, ok := n.tree["items"].(map[string]any)
		if !ok {
			t.Errorf("%s: %s is no array in the schema", path, typ)
			return
		}
		compare(t, path+"[]", typ.Elem(), node{n.id, items})
		return
	case typ.Kind() != reflect.Struct:
		return
	}
	properties, _ := n.tree["properties"].(map[string]any)
	required, _ := n.tree["required"].([]any)
	if n.tree["additionalProperties"] != false {
		t.Errorf("%s: not closed", path)
	}
	members := fields(typ)
	for name, f := range members {
		if typ == reflect.TypeFor[intents.JWK]() && slices.Contains([]string{"subject", "tenant", "not_after", "revoked", "raw"}, name) {
			continue // a task's key has none
		}
		p, ok := properties[name].(map[string]any)
		if !ok {
			t.Errorf("%s: %s has member %q, the schema has not", path, typ, name)
			continue
		}
		if !f.optional && !slices.Contains(required, any(name)) {
			t.Errorf("%s: member %q is optional in the schema only", path, name)
		}
		compare(t, path+"/"+name, f.typ, node{n.id, p})
	}
	for name := range properties {
		if _, ok := members[name]; !ok {
			t.Errorf("%s: the schema has member %q, %s has not", path, name, typ)
		}
	}
}

type field struct {
	typ      reflect.Type
	optional bool
}

// fields lists the JSON members of a struct, embedded ones included.
func fields(typ reflect.Type) map[string]field {
	out := map[string]field{}
	for _, f := range reflect.VisibleFields(typ) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || name == "" || name == "-" {
			continue
		}
		optional := strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")
		if len(f.Index) > 1 && typ.Field(f.Index[0]).Type.Kind() == reflect.Pointer {
			optional = true // all or none of an embedded pointer's members
		}
		out[name] = field{f.Type, optional}
	}
	return out
}

// TestRowsAreSound: properties that the router assumes without a check.
func TestRowsAreSound(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range Builtin().Rows() {
		if seen[r.Type] {
			t.Errorf("%s stands twice", r.Type)
		}
		seen[r.Type] = true
		area, verb, ok := strings.Cut(r.Capability, ":")
		if !ok || area == "" || verb == "" || strings.Contains(verb, ":") {
			t.Errorf("%s: capability %q is not area:verb", r.Type, r.Capability)
		}
		if len(r.Signers) == 0 || r.Executor == "" || r.Title == "" {
			t.Errorf("%s: a row names its signers, executor and title", r.Type)
		}
		if !slices.Contains([]Effect{Pure, Idempotent, Once, EffectPin}, r.Effect) {
			t.Errorf("%s: effect %q", r.Type, r.Effect)
		}
		if r.MaySign(intents.RoleRouter) || r.MaySign(intents.RoleLedger) || r.MaySign(intents.RoleRoot) {
			t.Errorf("%s: routers, ledgers and the root sign no intents", r.Type)
		}
		if r.TTL() <= 0 || r.TTL() > 300*time.Second || r.Run() <= 0 {
			t.Errorf("%s: ttl %s, run %s", r.Type, r.TTL(), r.Run())
		}
		administers := strings.HasPrefix(r.Capability, "admin:") && !slices.Contains([]string{"skill.approve", "registry.push", TypeAdminStop}, r.Type) // which people of its tenant sign
		if administers != slices.Equal(r.Signers, []intents.Role{intents.RoleOperator}) {
			t.Errorf("%s: admin intents, and they alone, are for operators only", r.Type)
		}
	}
}

func TestDigestNamesTheDocument(t *testing.T) {
	var doc struct {
		Intents []struct {
			Type   string          `json:"type"`
			Args   json.RawMessage `json:"args_schema"`
			Result json.RawMessage `json:"result_schema"`
		} `json:"intents"`
	}
	if err := json.Unmarshal(Builtin().Document(), &doc); err != nil {
		t.Fatal(err)
	}
	if len(doc.Intents) != len(Builtin().Rows()) {
		t.Errorf("document has %d of %d rows", len(doc.Intents), len(Builtin().Rows()))
	}
	if d := Builtin().Digest(); len(d) != len(digest) {
		t.Errorf("digest %q", d)
	}
}

// TestDisconnectNeeds: to end another's connection needs more than to end one's own, and so does that of
// somebody of the same name in another tenant.
func TestDisconnectNeeds(t *testing.T) {
	row, _ := Builtin().Lookup(TypeSkillDisconnect)
	for args, want := range map[string]string{
		`{"server":"crm"}`:                                 row.Capability,
		`{"user_id":"ana","server":"crm"}`:                 row.Capability,
		`{"user_id":"ben","server":"crm"}`:                 CapabilityDisconnectOthers,
		`{"tenant":"acme"}`:                                CapabilityDisconnectOthers,
		`{"tenant":"acme","user_id":"ana","server":"crm"}`: CapabilityDisconnectOthers,
	} {
		if got := row.Needs(json.RawMessage(args), "ana"); got != want {
			t.Errorf("%s needs %s", args, got)
		}
	}
}
