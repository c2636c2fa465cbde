package catalog

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"aob.dev/writ/intents"
)

var (
	operators = []intents.Role{intents.RoleOperator}
	// People of a tenant have the gateway sign these, too.
	administrators = []intents.Role{intents.RoleOperator, intents.RoleGateway}
	adminRows      = []Row{
		{Type: "key.put", Title: "Put a root-signed key-set version in force", Capability: "admin:keys", Signers: operators, Executor: ExecutorRouter, Effect: Idempotent},
		{Type: "admin.put", Title: "Change directory data", Capability: "admin:directory", Signers: operators, Executor: ExecutorRouter, Effect: Idempotent},
		{Type: "skill.approve", Title: "Pin a skill's manifest", Capability: "admin:skills", Signers: administrators, Executor: ExecutorRouter, Effect: Idempotent},
		{Type: TypeAdminStop, Title: "Stop what a tenant does, or let it go on", Capability: CapabilityStop, Signers: administrators, Executor: ExecutorRouter, Effect: Idempotent},
		{Type: "policy.push", Title: "Put a policy in force for all tenants", Capability: "admin:policy", Signers: operators, Executor: ExecutorRouter, Effect: Idempotent},
		{Type: "grant.revoke", Title: "End a user's grants, plans and runs", Capability: "admin:grants", Signers: operators, Executor: ExecutorRouter, Effect: Idempotent},
		{Type: "intent.resolve", Title: "Say how an indeterminate intent ended", Capability: "admin:intents", Signers: operators, Executor: ExecutorRouter, Effect: Idempotent},
		{Type: "record.erase", Title: "Take parts of an intent out of its records", Capability: "admin:records", Signers: operators, Executor: ExecutorRouter, Effect: Idempotent},
		{Type: "user.erase", Title: "Take everything of a disabled user out of the records and documents before it", Capability: "admin:records", Signers: operators, Executor: ExecutorRouter, Effect: Idempotent},
	}
)

// KeyPut are the arguments of key.put: a JWS by the root key (intents.SignKeySet).
type KeyPut struct {
	KeySet string `json:"key_set"`
}

// AdminPut are the arguments of admin.put: exactly one of the kinds. Tenant may
// be named by operators of system only; others act on their own.
type AdminPut struct {
	Tenant string    `json:"tenant,omitempty"`
	APIKey *APIKey   `json:"api_key,omitempty"`
	User   *User     `json:"user,omitempty"`
	Role   *RoleData `json:"role,omitempty"`
	New    *Tenant   `json:"new_tenant,omitempty"`
	Data   *Data     `json:"data,omitempty"`
}

// APIKey is a row of the directory: only the SHA-256 of the key is known.
type APIKey struct {
	ID            string   `json:"id"`
	Hash          string   `json:"hash,omitempty"` // "sha256:<hex>" of the key's text; empty only where people list keys
	UserID        string   `json:"user_id"`
	MaxRoles      []string `json:"max_roles"`
	MayAssertUser bool     `json:"may_assert_user,omitempty"`
	FrontEnd      bool     `json:"front_end,omitempty"` // of a chat program: it also asks for titles, and hangs up to stop
	InPerson      bool     `json:"in_person,omitempty"` // a person's, for the console and terminals: no /mcp, no OpenAI API
	Tools         []string `json:"tools,omitempty"`     // skills, or <server>.*, that MCP clients may use with it; nil: all
	Revoked       bool     `json:"revoked,omitempty"`

	Rename map[string]string `json:"rename,omitempty"` // skill to the name of its tool for MCP clients
	Group  map[string]string `json:"group,omitempty"`  // skill, or <server>.*, to what its tool's name begins with
}

// Gives reports whether the key allows a skill.
func (k APIKey) Gives(skill string) bool {
	return k.Tools == nil || slices.ContainsFunc(k.Tools, func(tool string) bool { return intents.Like(tool, skill) })
}

// User is a person of a tenant. Without a row a user has the API key's max_roles.
type User struct {
	UserID   string   `json:"user_id"`
	Roles    []string `json:"roles"`
	Disabled bool     `json:"disabled,omitempty"`
}

// RoleData maps a role to capabilities: area:verb[:resource], * for all of a part.
type RoleData struct {
	Role         string   `json:"role"`
	Capabilities []string `json:"capabilities"`
}

// Tenant is a new tenant.
type Tenant struct {
	ID string `json:"id"`
}

// Data is a tenant's data for policies: data.tenants[<tenant>][<key>].
type Data struct {
	Key   string          `json:"key"`
	Value json.RawMessage `json:"value"`
}

// SkillApprove are the arguments of skill.approve.
type SkillApprove struct {
	Tenant string `json:"tenant,omitempty"` // operators of system only
	Skill  string `json:"skill"`
	Digest string `json:"digest"`
	Effect Effect `json:"effect"` // pure, idempotent, once

	// Destructive says whether a call may destroy something: yes or no; empty: if it does more
	// than read.
	Destructive string `json:"destructive,omitempty"`

	// Trusted and OpenWorld: see intents.SkillInput.
	Trusted   bool   `json:"trusted,omitempty"`
	OpenWorld string `json:"open_world,omitempty"`

	Server string `json:"server,omitempty"` // whose tool it is, for people: the digest binds it

	// Summary is the sentence that people read who approve a call: see Sentence.
	Summary string `json:"summary,omitempty"`

	// InputSchema of the manifest, by which graphs are checked before they run; absent: their
	// inputs are checked when they do.
	InputSchema json.RawMessage `json:"input_schema,omitempty"`

	CacheSeconds int  `json:"cache_seconds,omitempty"` // how long an answer may serve equal calls; pure skills only
	Shared       bool `json:"shared,omitempty"`        // and those of other users

	Revoked bool `json:"revoked,omitempty"` // no version of the skill is approved any more
}

// GrantRevoke are the arguments of grant.revoke: grants of sub issued before.
type GrantRevoke struct {
	Tenant string `json:"tenant"`
	Sub    string `json:"sub"`
	Before string `json:"before"` // RFC 3339
}

// IntentResolve are the arguments of intent.resolve.
type IntentResolve struct {
	IntentID string `json:"intent_id"`
	Status   string `json:"status"` // done, failed
	Reason   string `json:"reason"`
}

// RecordErase are the arguments of record.erase: which parts of an intent are erased from
// its records. Tenant may be named by operators of system only.
type RecordErase struct {
	Tenant   string   `json:"tenant,omitempty"`
	IntentID string   `json:"intent_id"`
	Position int64    `json:"position"` // of the intent's record
	Parts    []string `json:"parts"`    // ErasesEnvelope and so on
	Reason   string   `json:"reason"`
}

// Command is the command that signs it, by an operator with the key of a data directory; the
// reason is theirs.
func (e RecordErase) Command() string {
	return fmt.Sprintf("writ intent erase %s --tenant %s --position %d --parts %s --reason TEXT", e.IntentID, e.Tenant, e.Position, strings.Join(e.Parts, ","))
}

// What record.erase can take away.
const (
	ErasesEnvelope = "envelope" // the envelope with its arguments, and its grant
	ErasesResult   = "result"   // the result, or the reason where there is none
	ErasesBlobs    = "blobs"    // the tenant's blobs that only these records name
)

// UserErase are the arguments of user.erase: all that may be erased of a user's intents before it,
// the documents that they wrote, and the blobs that only they hold. The user is disabled. Tenant may
// be named by operators of system only.
type UserErase struct {
	Tenant string `json:"tenant,omitempty"`
	UserID string `json:"user_id"`
	Reason string `json:"reason"`
}

// UserEraseResult is the result of user.erase.
type UserEraseResult struct {
	Accepted bool  `json:"accepted"`
	Intents  int64 `json:"intents"` // of the user, before it
	Erased   int64 `json:"erased"`  // of these, those that lose envelope, grant and replay
	// Retained are the others: of all intents only the results go.
	Retained  []RetainedIntents `json:"retained"`
	Remaining []string          `json:"stays"` // where else the user's words may be, and what to do
}

// RetainedIntents counts the intents of a type that a user.erase leaves.
type RetainedIntents struct {
	Type    string `json:"type"`
	Why     string `json:"why"` // RetainedHeld or RetainedJudged
	Intents int64  `json:"intents"`
}

// Why a user.erase leaves an intent.
const (
	RetainedHeld   = "held"   // people were asked about it
	RetainedJudged = "judged" // later records are judged by it: administration, approvals and the like
)

// UserRemaining says where words of an erased user may remain.
func UserRemaining() []string {
	return []string{
		"the user id, times, types, sizes and decisions of all intents, for good",
		"texts of others: approvals and edits of this user's intents, and what others asked, remembered or added about the user: writ intent erase INTENT_ID --reason TEXT, kb.remove",
		"documents of the whole tenant in the knowledge base, which do not say who added them: writ kb remove ID --tenant",
		"blobs that intents of others, retained intents or memories of others hold",
		"a copy of the keys elsewhere: replace it now with writ admin backup DIR --erasable FILE; versions of it keep what was erased",
		"bundles, backups of documents and copies of a cell that somebody has: delete them",
		"what model servers, skill servers, remote agents and other systems were sent: ask them",
		"OpenSearch segments and Raft logs until they are merged and compacted; homes of skill servers",
	}
}

// PolicyPush are the arguments of policy.push: a policy for all tenants, as an
// OPA bundle. The signature of the intent is that of the bundle.
type PolicyPush struct {
	Revision int64  `json:"revision"` // higher than the one in force; the bundle's manifest says the same
	Digest   string `json:"digest"`   // of the tree (policies.Source.Digest)
	Bundle   string `json:"bundle"`   // gzipped tar, base64
}

// PolicyShadowKey is the data of tenant system that has a policy be tried beside the one in force.
const PolicyShadowKey = "policy_shadow"

// PolicyShadow is its value. The signature of the intent that puts it is that of the bundle.
type PolicyShadow struct {
	Since  time.Time `json:"since"`
	Digest string    `json:"digest"` // of the tree
	Bundle string    `json:"bundle"` // as in PolicyPush, of any revision
}

// EraseResult is the result of record.erase. Remaining says where copies of the erased data may be, and what to do
// about each: the erasure changes the records of one intent, and nothing else.
type EraseResult struct {
	Accepted  bool     `json:"accepted"`
	Remaining []string `json:"stays"`
}

// RemainingCopies says where copies of erased parts may remain.
func RemainingCopies(parts []string) []string {
	const erase = ", and erase each with writ intent erase INTENT_ID --reason TEXT"
	out := []string{
		"in results of intents that showed it (plan.get, transcript.get, session.get, memory.query, read_memory, read_lines, kb.search): list them with writ audit search --kind intent --type TYPE" + erase + " --parts result",
		"in other intents of its plan (plan.open, plan, step.finish, plan.close, write_memory, session.append): list them with writ audit search --plan PLAN --kind intent" + erase,
		"in documents that its plan wrote: sessions, and memories with what was remembered of it, stay until their retention ends; knowledge goes with kb.remove",
		"elsewhere: backups, bundles that were handed out, and what skill servers and external executors were sent",
	}
	for _, part := range []string{ErasesEnvelope, ErasesResult, ErasesBlobs} {
		if !slices.Contains(parts, part) {
			out = append(out, "in this intent itself: --parts "+part+" was not asked for")
		}
	}
	return out
}

// Ack is the result of every intent whose effect is only a transition of the state.
type Ack struct {
	Accepted bool `json:"accepted"`
}
