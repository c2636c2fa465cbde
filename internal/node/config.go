package node

import (
	"log/slog"
	"time"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/executors/mcp"
	"aob.dev/writ/gateway"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/embed"
	"aob.dev/writ/internal/notify"
	"aob.dev/writ/internal/openid"
	"aob.dev/writ/policies"
	"aob.dev/writ/router"
	"aob.dev/writ/router/breakers"
)

// Config of `writ up`. Dir, Model, Now and Log are required.
type Config struct {
	Dir       string // data directory; made with mode 0700
	Listen    string // HTTP, host:port
	FirstKey  string // API key that a first start takes; empty: it makes one
	TLSCert   string // PEM files of the HTTP listener; empty: no TLS
	TLSKey    string
	PublicURL string              // where people reach it, without a slash at its end; empty: at Listen
	Users     []string            // headers in which chat front ends name users
	Origins   []string            // of other sites whose pages may call the API
	Metrics   string              // host:port of a listener for /metrics; empty: none
	Documents datadir.DocumentsAt // an OpenSearch; the zero value: documents are in Dir
	Blobs     datadir.BlobsAt     // where blobs are; the zero value: where they were, at first in Dir
	Embedder  embed.Embedder      // makes the vectors of documents, in the dimension of the store; nil: none
	Reranker  *embed.Reranker     // of the hits of kb.search; nil: none
	NATS      string              // host:port of a NATS listener; empty: none
	NATSCert  string              // PEM files of that listener; empty: no TLS
	NATSKey   string
	Catalog   string   // directory of vendors' intent types; empty: none
	Skills    []string // skill servers: URLs or commands
	// SkillServers are further servers, already parsed.
	SkillServers []mcp.Source
	SkillTimeout time.Duration // of one request to a server that has none of its own; 0: the default
	StepTime     time.Duration // time limit of steps and built-in agents; 0: the default
	SkillRetries int           // of one request; 0: the default; negative: none
	MCPPinned    []string      // skills that MCP clients are always listed
	AgentHosts   []string      // where remote agents may be beside the public network
	Secrets      []string      // files of the configuration that no skill server may see
	// Builtin are the URLs of skill servers in this process, by name. A URL may be another
	// one at each start; the name identifies the server.
	Builtin        map[string]string
	Policy         policies.Feed // it is watched
	Driver         string        // minimum sandbox driver; empty: the best there is
	Limits         Limits
	Witnesses      []Witness // that cosign checkpoints
	Model          model.Model
	Models         map[string]model.Model   // that agents may name
	Agents         string                   // directory of agents, which is watched; empty: none
	AgentsFound    bool                     // nobody named it: it is read only if its owner is that of Dir
	AgentVariables []string                 // of the environment, that their files may take
	RunAgent       string                   // agent for requests that name none; empty: the planner
	Routing        catalog.Routing          // its switches; zero: the defaults
	Profiles       gateway.Profiles         // of users; nil: none
	People         *openid.Providers        // who come with access tokens; nil: nobody
	Prices         map[string]catalog.Price // of models, by driver:model
	Cluster        *Cluster                 // nil: everything is in one process
	Dropped        func() int64             // lines of the log that nobody read in time; nil: none is dropped
	Alerts         []notify.Receiver        // receivers of alerts
	Notices        []Notices                // receivers of approvals that wait
	AuditStream    notify.Receiver          // of every record; nil: nobody
	Now            func() time.Time
	// Elapsed only runs forward, and Now is checked against it. Nil: Now is trusted.
	Elapsed func() time.Duration
	Log     *slog.Logger
}

// ReadRate is how many reads a minute a user of an API key has.
const ReadRate = gateway.ReadRate

// Limits of a node. 0: the default; negative: none.
type Limits struct {
	Requests               int           // of one user in a window, at the gateway
	MCPRate                int           // calls of MCP clients a minute, of a tenant's user
	MCPTools               int           // skills that MCP clients are listed; more are searched for
	Window                 time.Duration // that window
	Rates                  router.Rates
	UserHolds, TenantHolds int // intents that may wait for approval at once
	Breakers               *breakers.Terms
	FreeFloor              int64 // bytes of free disk below which no new intent is accepted; uploads stop at twice that
	PageCache              int64 // bytes of page caches of journal and documents together; 0: the default
	TenantDisk             int64 // bytes of files and artifacts that one tenant may store
	SessionTTL             time.Duration
	SessionTurns           int // messages that a session has
}
