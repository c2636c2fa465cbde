package catalog

import (
	"encoding/json"
	"strings"
	"time"

	"aob.dev/writ/intents"
)

var skillRows = []Row{
	{Type: "skill.find", Title: "Find skills for a task", Capability: "skills:read", Signers: []intents.Role{intents.RolePlanner, intents.RoleTask}, Executor: "skills", Effect: Pure},
	{Type: "skill.load", Title: "Load manifests of skills", Capability: "skills:read", Signers: []intents.Role{intents.RolePlanner, intents.RoleTask}, Executor: "skills", Effect: Pure},
	{Type: "skill.call", Title: "Call a skill", Capability: "skills:call", Signers: []intents.Role{intents.RoleTask, intents.RoleWorkflow}, Executor: "skills", Effect: EffectPin, DataAt: "/input", MaxRun: MaxCall + time.Minute},
	{Type: "resource.read", Title: "Read a resource or a prompt of a skill server", Capability: "resources:read", Signers: []intents.Role{intents.RoleTask}, Executor: "skills", Effect: Pure},
}

// MaxCall is the longest call of a skill. The limits of one call follow from each other:
//
//   - Its server's timeout ends it, by default a minute after its last progress (package mcp).
//   - The run of its type, a minute more than MaxCall, is the deadline of its ticket. A router does
//     not wait for one reply so long: after seconds it asks the executor what the call does.
//   - A task that signed it asks the router again every few minutes. If the task's own time is over,
//     the step goes on with another task.
//   - An MCP client is answered that the call runs, unless it listens for progress.
const MaxCall = 24 * time.Hour

// MaxFound is how many skills one skill.find returns at most.
const MaxFound = 100

// SkillFind are the arguments of skill.find.
type SkillFind struct {
	Query string `json:"query"`
	Limit int    `json:"limit,omitempty"` // 1..MaxFound, default 20
	// Related leaves out the skills that share no word with the query, unless their service names them.
	Related bool `json:"related,omitempty"`
}

// SkillHit is a candidate.
type SkillHit struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

// SkillFindResult is the result of skill.find, best first; only pinned skills.
type SkillFindResult struct {
	Skills []SkillHit `json:"skills"`
	Notes  []string   `json:"notes,omitempty"` // Skill Services that did not rank their skills
}

// MaxLoaded is how many skills one skill.load loads at most.
const MaxLoaded = 100

// SkillLoad are the arguments of skill.load: one skill, or several by their ids.
type SkillLoad struct {
	Skill  string   `json:"skill,omitempty"`
	Skills []string `json:"skills,omitempty"`
}

// SkillLoadResult is the result of skill.load: the manifest of one skill, or those of
// several.
type SkillLoadResult struct {
	*Manifest
	Skills      []Manifest `json:"skills,omitempty"`
	Unavailable []string   `json:"unavailable,omitempty"` // not approved any more, or their server does not answer
}

// Manifest describes a skill as it was approved.
type Manifest struct {
	Name          string          `json:"name"` // its id
	Description   string          `json:"description"`
	InputSchema   json.RawMessage `json:"input_schema"`
	OutputSchema  json.RawMessage `json:"output_schema,omitempty"`
	ExecutionMode string          `json:"execution_mode"` // as its Skill Service says, or sync; writ waits for the answer
	Endpoint      string          `json:"endpoint"`       // the server's name, never an address
	Digest        string          `json:"digest"`
	Effect        Effect          `json:"effect"`
	Destructive   bool            `json:"destructive,omitempty"` // as its server declares
	WireName      string          `json:"wire_name,omitempty"`   // of the tool, for models and MCP clients
}

// Tool is the name of the skill's tool, without that of its server.
func (m Manifest) Tool() string { return strings.TrimPrefix(m.Name, m.Endpoint+".") }

// SkillCall are the arguments of skill.call: at most one of Input and From.
type SkillCall struct {
	From  string          `json:"from,omitempty"`
	Input json.RawMessage `json:"input,omitempty"` // object
	Skill string          `json:"skill"`
}

// Incomplete is the member status of an output {status, result, odd} that stands for an answer
// with something dropped, or that differs from its skill's declaration: odd says what.
const Incomplete = "incomplete"

// SkillCallResult is the result of skill.call: what the skill answered, or a
// reference when that has 50,000 bytes or more.
type SkillCallResult struct {
	Output json.RawMessage `json:"output,omitempty"`
	*Reference
	Status string `json:"status,omitempty"` // Partial; else the result is complete
	// Content are the parts of the answer as the server sent them, with a ContentFile for bytes; nil:
	// Output says it all. With Structured the server sent structured content, too: Output, or its
	// result if there are files.
	Content    []json.RawMessage `json:"content,omitempty"`
	Structured bool              `json:"structured,omitempty"`
}

// Partial is the status of data for which some sources failed, so that an answer can mention it.
const Partial = "partial"
