package catalog

import (
	"time"

	"aob.dev/writ/intents"
)

// connectionRows are carried out by the skills executor, which has the users' tokens.
var connectionRows = []Row{
	{Type: "skill.connect", Title: "Connect a user to a skill server", Capability: "skills:call", Signers: []intents.Role{intents.RoleGateway}, Executor: "skills", Effect: Idempotent, RandomKey: true},
	{Type: TypeSkillDisconnect, Title: "End a user's connection to a skill server", Capability: "skills:call", Signers: []intents.Role{intents.RoleGateway, intents.RoleOperator}, Executor: "skills", Effect: Idempotent, RandomKey: true},
}

// TypeSkillDisconnect ends a connection.
const TypeSkillDisconnect = "skill.disconnect"

// CapabilityDisconnectOthers lets somebody end the connections of other users.
const CapabilityDisconnectOthers = "admin:connections"

// SkillConnect are the arguments of skill.connect: a link, or an answer.
type SkillConnect struct {
	Link        string `json:"link,omitempty"`
	RedirectURI string `json:"redirect_uri,omitempty"`
	Absent      bool   `json:"absent,omitempty"`
	Answer      string `json:"answer,omitempty"`
}

// SkillConnectResult is the result of skill.connect.
type SkillConnectResult struct {
	Server           string   `json:"server"`
	Address          string   `json:"address"`
	Issuer           string   `json:"issuer"`
	Scopes           []string `json:"scopes"`
	Connected        bool     `json:"connected"`
	AuthorizationURL string   `json:"authorization_url,omitempty"`
}

// SkillDisconnect are the arguments of skill.disconnect. No user: the caller. No server: all of the user's. Tenant may
// be named by operators of system only.
type SkillDisconnect struct {
	Tenant string `json:"tenant,omitempty"`
	Server string `json:"server,omitempty"`
	UserID string `json:"user_id,omitempty"`
}

// SkillDisconnectResult is the result of skill.disconnect: with a server, whether there was a connection, and whether
// its authorization server took the tokens back; else both of all, and each.
type SkillDisconnectResult struct {
	Removed     bool          `json:"removed"`
	Revoked     bool          `json:"revoked"`
	Connections []EndedAccess `json:"connections,omitempty"`
}

// EndedAccess is one of several connections that were ended.
type EndedAccess struct {
	Server  string `json:"server"`
	Revoked bool   `json:"revoked"`
}

// ConnectLink is the content of a link to connect, and of the state that the browser brings back.
type ConnectLink struct {
	Tenant string    `json:"t"`
	User   string    `json:"u"`
	Server string    `json:"s"`
	Nonce  string    `json:"n"`
	Until  time.Time `json:"e"`
}

// ConnectLife is how long a link may be used, and how long the person has to answer then.
const ConnectLife = 10 * time.Minute

// ConnectAnswer is the answer of an authorization server.
type ConnectAnswer struct {
	ConnectLink
	Code   string `json:"code"`
	Issuer string `json:"iss,omitempty"`
}

// ConnectDetail is the member of a failure's details that has the link by which the user connects.
const ConnectDetail = "connect_url"

// LinkUse is the use of the key of links, which gateways and executors share, to seal these.
const (
	LinkUse      = "writ connection link v1\n"
	SealedLink   = "link"
	SealedState  = "state"
	SealedAnswer = "answer"
)

// ConnectPage is the page of the console that a link opens; its token follows. ConnectReturn is where
// authorization servers send the browser.
const (
	ConnectPage   = "/console/connect/"
	ConnectReturn = "/console/connected"
)
