// Package bus defines the NATS subjects and connects to NATS. Agents may publish
// orders, reads and their own turn's frames; executors answer tickets; only routers
// have the JetStream API. Package natsserver enforces it.
package bus

import "strings"

// Subjects. Tokens in angle brackets are filled by the functions below.
const (
	Orders             = "writ.orders"              // request: a sealed order; reply: an Answer
	Batches            = "writ.batches"             // request: a batch of sealed orders; reply: a BatchAnswer
	DirectoryAPIKey    = "writ.directory.apikey"    // request: APIKeyRequest; reply: APIKeyReply
	DirectoryUser      = "writ.directory.user"      // request: UserRequest; reply: UserReply
	DirectoryApprovals = "writ.directory.approvals" // request: ApprovalsRequest; reply: ApprovalsReply
	DirectoryRegistry  = "writ.directory.registry"  // request: RegistryRequest; reply: RegistryReply
	PlansSilent        = "writ.plans.silent"        // request: SilentRequest; reply: SilentReply
	ClientPlans        = "writ.client.plans"        // request: ClientPlan; reply: ClientPlanReply
	clientPrefix       = "writ.client.calls."       // writ.client.calls.<instance>: request: ClientCall; reply: ClientReply
	execPrefix         = "writ.exec."               // writ.exec.<type>: request: a dispatch; reply: a report
	logPrefix          = "writ.log."                // writ.log.<executor>: lines of an order that it carries out; no reply
	logsPrefix         = "writ.logs."               // writ.logs.<instance>: request: LogsRequest; reply: LogsReply
	agentPrefix        = "writ.agent."              // writ.agent.<role>: a delegation; to the manager: HandOut
	producePrefix      = "writ.produce."            // writ.produce.<role>: request: ProduceRequest; reply: ProduceReply
	eventsPrefix       = "writ.events."             // writ.events.<tenant>.<kind>: an event for other systems; no reply
	turnPrefix         = "writ.turn."               // writ.turn.<tenant>.<turn_id>: display frames: TurnFrame
	drivingPrefix      = "writ.driving."            // writ.driving.<role>: request to all processes: DrivingRequest; reply of the one that drives the plan: DrivingReply
	grantPrefix        = "writ.grant."              // writ.grant.<role>.<instance>: request: FreshGrant; reply: FreshGrantReply
)

// FramesStream is the JetStream stream of display frames (memory, 10 minutes).
const FramesStream = "FRAMES"

// FramesAPI begins what a reader of that stream may ask of JetStream.
const FramesAPI = "writ.frames."

// EventsStream is the JetStream stream of events for other systems (memory, an hour).
const EventsStream = "EVENTS"

// EventsAPI is what users of that stream have in place of $JS.API.
const EventsAPI = "writ.jetstream"

// Events are the subjects of a tenant's events.
func Events(tenant string) string { return eventsPrefix + token(tenant) + ".>" }

// Hearer is the role of readers of events.
const Hearer = "hearer"

// EventReader is what the consumer of a reader, <tenant>_<name>, must be called.
func EventReader(reader string) string { return token(reader) }

// Exec is the subject of an intent type. Types hold dots; they stay tokens.
func Exec(typ string) string { return execPrefix + typ }

// SkillVersions is where the skills executor says which versions of skills servers declare.
const SkillVersions = execPrefix + "skills"

// Log is the subject on which an executor shows what is written while it carries an order out.
func Log(executor string) string { return logPrefix + executor }

// LogStreams is the service of the executor logs that the gateway reads streams from.
const LogStreams = "log-streams"

// Logs is the subject of the process of the executor logs that has a stream.
func Logs(instance string) string { return logsPrefix + token(instance) }

// Agent is the subject of an agent role.
func Agent(role string) string { return agentPrefix + role }

// AgentInstance is the subject of one process of an agent role, for work that it has
// begun.
func AgentInstance(role, id string) string { return agentPrefix + role + "." + token(id) }

// Produce is the subject on which a role makes an order of a sentence.
func Produce(role string) string { return producePrefix + role }

// ClientCalls is the subject of the process of the task role that has the key of a client's
// plan.
func ClientCalls(instance string) string { return clientPrefix + token(instance) }

// ServiceName is what the micro service of a user (an executor, an agent role,
// the router) must be called: it may answer discovery under no other name.
func ServiceName(user string) string { return "writ-" + user }

// Turn is the subject of a turn's frames.
func Turn(tenant, turn string) string { return turnPrefix + token(tenant) + "." + token(turn) }

// Driving is the subject on which each process of a role hears who looks for a plan's driver.
func Driving(role string) string { return drivingPrefix + role }

// Grant is the subject on which one process of an agent role gets fresh grants of
// the turns that it works on; no other process receives them.
func Grant(role, instance string) string { return grantPrefix + role + "." + token(instance) }

// ProcessUser is the name of the user that one process of a role connects as.
func ProcessUser(role, instance string) string { return role + "_" + instance }

// token keeps an identifier ([A-Za-z0-9_.-]) one subject token.
func token(id string) string { return strings.ReplaceAll(id, ".", "~") }
