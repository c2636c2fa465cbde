// Package bus defines the NATS subjects and connects to NATS. Agents may publish intents, reads
// and their own turn's frames; executors answer tickets; only routers have the JetStream API.
// Package natsserver enforces it.
package bus

import "strings"

// Subjects. The functions below fill the tokens in angle brackets.
const (
	Intents           = "writ.intents"            // request: a signed intent; reply: an Answer
	Batches           = "writ.batches"            // request: a batch of signed intents; reply: a BatchAnswer
	DirectoryAPIKey   = "writ.directory.apikey"   // request: APIKeyRequest; reply: APIKeyReply
	DirectoryUser     = "writ.directory.user"     // request: UserRequest; reply: UserReply
	DirectoryRegistry = "writ.directory.registry" // request: RegistryRequest; reply: RegistryReply
	PlansSilent       = "writ.plans.silent"       // request: SilentRequest; reply: SilentReply
	ClientPlans       = "writ.client.plans"       // request: ClientPlan; reply: ClientPlanReply
	clientPrefix      = "writ.client.calls."      // writ.client.calls.<instance>: request: ClientCall; reply: ClientReply
	CallerKeys        = "writ.callerkeys"         // request to all processes of the skills executor: a sealed catalog.CallerKey; reply: {}
	execPrefix        = "writ.exec."              // writ.exec.<type>: request: a dispatch; reply: a report
	reportsPrefix     = "writ.reports."           // writ.reports.<executor>: request to all processes: ReportRequest; reply: ReportReply
	logPrefix         = "writ.log."               // writ.log.<executor>: log lines of an intent in execution; no reply
	logsPrefix        = "writ.logs."              // writ.logs.<instance>: request: LogsRequest; reply: LogsReply
	agentPrefix       = "writ.agent."             // writ.agent.<role>: a delegation; to the manager: PlanDispatch
	producePrefix     = "writ.produce."           // writ.produce.<role>: request: ProduceRequest; reply: ProduceReply
	Prompts           = "writ.prompts"            // request: PromptRequest; reply: PromptReply
	eventsPrefix      = "writ.events."            // writ.events.<tenant>.<kind>: an event for other systems; no reply
	turnPrefix        = "writ.turn."              // writ.turn.<tenant>.<turn_id>: display frames: TurnFrame
	findRunPrefix     = "writ.driving."           // writ.driving.<role>: request to all processes: FindRunRequest; only the process that runs the plan replies: FindRunReply
	grantPrefix       = "writ.grant."             // writ.grant.<role>.<instance>: request: FreshGrant; reply: FreshGrantReply
)

// FramesStream is the JetStream stream of display frames (memory, 10 minutes).
const FramesStream = "FRAMES"

// FramesAPI is the prefix of the JetStream requests that a reader of that stream may send.
const FramesAPI = "writ.frames."

// EventsStream is the JetStream stream of events for other systems (memory, an hour).
const EventsStream = "EVENTS"

// EventsAPI replaces $JS.API for users of that stream.
const EventsAPI = "writ.jetstream"

// Events returns the subjects of a tenant's events.
func Events(tenant string) string { return eventsPrefix + token(tenant) + ".>" }

// Hearer is the role of readers of events.
const Hearer = "hearer"

// EventReader returns the required name of the consumer of a reader, <tenant>_<name>.
func EventReader(reader string) string { return token(reader) }

// Exec returns the subject of an intent type. The dots in types stay token separators.
func Exec(typ string) string { return execPrefix + typ }

// Reports returns the subject on which each process of an executor says what it knows of an intent.
func Reports(executor string) string { return reportsPrefix + executor }

// SkillVersions is the subject on which the skills executor reports the skill versions that
// servers declare.
const SkillVersions = execPrefix + "skills"

// SkillAnswers is the subject on which the skills executor reports the cached answers that serve a
// user.
const SkillAnswers = execPrefix + "answers" // request: SkillAnswersRequest; reply: catalog.CacheStatsResult

// Log returns the subject on which an executor publishes log lines while it executes an intent.
func Log(executor string) string { return logPrefix + executor }

// LogStreams is the service of the executor logs from which the gateway reads streams.
const LogStreams = "log-streams"

// Logs returns the subject of the process of the executor logs that has a stream.
func Logs(instance string) string { return logsPrefix + token(instance) }

// Agent returns the subject of an agent role.
func Agent(role string) string { return agentPrefix + role }

// AgentInstance returns the subject of one process of an agent role, for work that it has begun.
func AgentInstance(role, id string) string { return agentPrefix + role + "." + token(id) }

// Produce returns the subject on which a role turns a sentence into an intent.
func Produce(role string) string { return producePrefix + role }

// ClientCalls returns the subject of the process of the task role that has the key of a client's
// plan.
func ClientCalls(instance string) string { return clientPrefix + token(instance) }

// ServiceName returns the required name of the micro service of a user (an executor, an agent
// role, the router): it may answer discovery under no other name.
func ServiceName(user string) string { return "writ-" + user }

// Turn returns the subject of a turn's frames.
func Turn(tenant, turn string) string { return turnPrefix + token(tenant) + "." + token(turn) }

// FindRun returns the subject on which each process of a role receives requests for the driver of
// a plan.
func FindRun(role string) string { return findRunPrefix + role }

// Grant returns the subject on which one process of an agent role receives fresh grants of the
// turns that it works on; no other process receives them.
func Grant(role, instance string) string { return grantPrefix + role + "." + token(instance) }

// ProcessUser returns the user name with which one process of a role connects.
func ProcessUser(role, instance string) string { return role + "_" + instance }

// token turns an identifier ([A-Za-z0-9_.-]) into one subject token.
func token(id string) string { return strings.ReplaceAll(id, ".", "~") }
