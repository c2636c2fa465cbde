package natsserver

import (
	"cmp"
	"time"

	"aob.dev/writ/internal/bus"
)

// The accounts. Servers and clients of a service are in different ones. A client
// chooses the reply subject, so it must lead nowhere but into the client's own account:
// nothing is served there, and it imports nothing that the client may not publish
// anyway. The serving side sees only reply subjects that the NATS server made.
const (
	accountAgents  = "AGENTS"  // the agentic layer, serving
	accountGateway = "GATEWAY" // its members, asking
	accountManager = "MANAGER"
	accountPlanner = "PLANNER"
	accountTask    = "TASK"
	accountRuns    = "RUNS"
	accountExec    = "EXEC"    // executors
	accountCore    = "CORE"    // the routers, and JetStream but for frames and events
	accountReaders = "READERS" // readers of display frames
	accountFrames  = "FRAMES"  // the stream of display frames, and nothing that a consumer of it could be delivered to
	accountEvents  = "EVENTS"  // likewise that of events
	accountTeller  = "TELLER"  // publishes them
	accountHearers = "HEARERS" // other systems, which read them
	accountSystem  = "SYS"     // nobody
)

// An answer may take this long: the longest run of an order, and a delegation
// to a task. The server drops later replies.
const (
	orderTime      = 15 * time.Minute
	delegationTime = time.Hour
)

// account, and the types below it, are the accounts part of a nats-server
// configuration; their JSON is legal there. A cluster's users are those of
// rights.go, one for each connection of a process (cluster.go).
type account struct {
	JetStream string   `json:"jetstream,omitempty"`
	Exports   []export `json:"exports,omitempty"`
	Imports   []imp    `json:"imports,omitempty"`
	Users     []user   `json:"users,omitempty"` // of a cluster; ours come and go
}

type export struct {
	Service   string   `json:"service"`
	Response  string   `json:"response_type,omitempty"`
	Threshold string   `json:"response_threshold,omitempty"`
	Accounts  []string `json:"accounts"`
}

type imp struct {
	Service source `json:"service"`
	To      string `json:"to,omitempty"` // what it is called here; empty: the same
}

type source struct {
	Account string `json:"account"`
	Subject string `json:"subject"`
}

// Subjects of $SRV (discovery of micro services) and of what crosses accounts.
const (
	discovery = "$SRV.>"
	execAll   = "writ.exec.>"
	turnAll   = "writ.turn.>"
	eventsAll = "writ.events.>"
)

// What a reader of frames may request of JetStream: a consumer of its own on the one
// stream, filtered to turns. An account without JetStream has a $JS.API of its own,
// which refuses everything: there these have another name.
const (
	jetStreamAPI = "$JS.API."
	framesStream = "STREAM.CREATE." + bus.FramesStream // by a router
	framesCreate = "CONSUMER.CREATE." + bus.FramesStream + ".*." + turnAll
	framesNext   = "CONSUMER.MSG.NEXT." + bus.FramesStream + ".*"
	framesDelete = "CONSUMER.DELETE." + bus.FramesStream + ".*"
)

// eventsCrossings are what may be asked of the stream of events: by who publishes, and by
// who reads.
func eventsCrossings() []crossing {
	out := []crossing{
		{subject: eventsAll, of: accountEvents, by: []string{accountTeller}},
		{subject: "$JS.ACK." + bus.EventsStream + ".*.>", of: accountEvents, by: []string{accountHearers}},
	}
	ask := func(by, what string, stream bool) {
		out = append(out, crossing{subject: jetStreamAPI + what, called: bus.EventsAPI + "." + what, of: accountEvents, by: []string{by}, stream: stream})
	}
	for _, verb := range []string{"STREAM.CREATE.", "STREAM.INFO.", "STREAM.MSG.GET."} {
		ask(accountTeller, verb+bus.EventsStream, false)
	}
	ask(accountHearers, "CONSUMER.CREATE."+bus.EventsStream+".*."+eventsAll, false)
	ask(accountHearers, "CONSUMER.INFO."+bus.EventsStream+".*", false)
	ask(accountHearers, "CONSUMER.MSG.NEXT."+bus.EventsStream+".*", true)
	ask(accountHearers, "CONSUMER.DELETE."+bus.EventsStream+".*", false)
	return out
}

// crossing is a service of one account and the accounts that may request it.
type crossing struct {
	subject, of string
	by          []string
	called      string        // what those who ask call it; empty: the same
	stream      bool          // more than one answer
	within      time.Duration // of the answer; 0: the server's default
}

// crossings are all ways from one account into another.
func crossings() []crossing {
	sealers := []string{accountGateway, accountManager, accountPlanner, accountTask, accountRuns}
	gateway, manager := []string{accountGateway}, []string{accountManager}
	drivers := []string{accountManager, accountRuns}
	core, frames := []string{accountCore}, []string{accountReaders}
	return append(eventsCrossings(), []crossing{
		{subject: bus.Orders, of: accountCore, by: sealers, within: orderTime},
		{subject: bus.Batches, of: accountCore, by: sealers, within: orderTime},
		{subject: bus.DirectoryAPIKey, of: accountCore, by: gateway},
		{subject: bus.DirectoryUser, of: accountCore, by: gateway},
		{subject: bus.DirectoryApprovals, of: accountCore, by: gateway},
		{subject: bus.DirectoryRegistry, of: accountCore, by: gateway},
		{subject: bus.PlansSilent, of: accountCore, by: gateway},
		// One way: the stream FRAMES stores them, and there are no replies. Only
		// drivers and the gateway publish frames, so that a compromised task or planner
		// cannot answer the user.
		{subject: turnAll, of: accountFrames, by: []string{accountGateway, accountManager, accountRuns}},
		{subject: jetStreamAPI + framesStream, called: bus.FramesAPI + framesStream, of: accountFrames, by: core},
		{subject: jetStreamAPI + framesCreate, called: bus.FramesAPI + framesCreate, of: accountFrames, by: frames},
		{subject: jetStreamAPI + framesNext, called: bus.FramesAPI + framesNext, of: accountFrames, by: frames, stream: true},
		{subject: jetStreamAPI + framesDelete, called: bus.FramesAPI + framesDelete, of: accountFrames, by: frames},
		{subject: bus.Agent(Manager), of: accountAgents, by: gateway},
		{subject: bus.Grant(Manager, everyProcess), of: accountAgents, by: gateway},
		{subject: bus.Driving(Manager), of: accountAgents, by: gateway},
		{subject: bus.Agent(Workflow), of: accountAgents, by: gateway},
		{subject: bus.Driving(Workflow), of: accountAgents, by: gateway},
		{subject: bus.Grant(Workflow, everyProcess), of: accountAgents, by: gateway},
		{subject: bus.ClientPlans, of: accountAgents, by: gateway},
		{subject: bus.Produce(Manager), of: accountAgents, by: gateway, within: delegationTime},
		{subject: bus.Produce(Planner), of: accountAgents, by: manager, within: delegationTime},
		{subject: bus.ClientCalls(everyProcess), of: accountAgents, by: gateway, within: orderTime},
		{subject: bus.Agent(Planner), of: accountAgents, by: manager, within: delegationTime},
		{subject: bus.AgentInstance(Planner, everyProcess), of: accountAgents, by: manager, within: delegationTime},
		{subject: bus.Grant(Planner, everyProcess), of: accountAgents, by: manager},
		{subject: bus.Agent(Task), of: accountAgents, by: drivers, within: delegationTime},
		{subject: bus.AgentInstance(Task, everyProcess), of: accountAgents, by: drivers, stream: true, within: delegationTime},
		{subject: bus.Grant(Task, everyProcess), of: accountAgents, by: drivers},
		{subject: execAll, of: accountExec, by: core, within: orderTime},
		{subject: bus.Logs(everyProcess), of: accountExec, by: gateway},
		{subject: discovery, of: accountExec, by: core, stream: true},
	}...)
}

// everyProcess stands for each process of a role.
const everyProcess = "*"

// accounts is the whole of what crosses accounts.
func accounts() map[string]*account {
	out := map[string]*account{accountSystem: {}, accountCore: {JetStream: "enabled"}, accountFrames: {JetStream: "enabled"}, accountEvents: {JetStream: "enabled"}}
	at := func(name string) *account {
		if out[name] == nil {
			out[name] = &account{}
		}
		return out[name]
	}
	for _, c := range crossings() {
		e := export{Service: c.subject, Accounts: c.by}
		if c.within > 0 {
			e.Threshold = c.within.String()
		}
		if c.stream {
			e.Response = "Stream"
		}
		at(c.of).Exports = append(at(c.of).Exports, e)
		for _, by := range c.by {
			at(by).Imports = append(at(by).Imports, imp{source{c.of, c.subject}, c.called})
		}
	}
	return out
}

// imports are the subjects that an account may ask of others.
func imports(name string) []string {
	var out []string
	for _, c := range crossings() {
		for _, by := range c.by {
			if by == name {
				out = append(out, cmp.Or(c.called, c.subject))
			}
		}
	}
	return out
}
