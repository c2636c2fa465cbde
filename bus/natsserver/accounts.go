package natsserver

import (
	"cmp"
	"time"

	"aob.dev/writ/bus"
)

// The accounts. Servers and clients of a service are in different ones. A client chooses the
// reply subject, so it must lead only into the client's own account: nothing is served there, and
// it imports nothing that the client may not publish anyway. The serving side sees only reply
// subjects that the NATS server created.
const (
	accountAgents  = "AGENTS"  // the agentic layer, serving
	accountGateway = "GATEWAY" // members of the agentic layer and the gateway, requesting
	accountManager = "MANAGER"
	accountPlanner = "PLANNER"
	accountTask    = "TASK"
	accountRuns    = "RUNS"
	accountExec    = "EXEC"    // executors
	accountCore    = "CORE"    // the routers, and JetStream except for frames and events
	accountReaders = "READERS" // readers of display frames
	accountFrames  = "FRAMES"  // the stream of display frames, and nothing that a consumer of it could be delivered to
	accountEvents  = "EVENTS"  // likewise for events
	accountTeller  = "TELLER"  // publishes events
	accountHearers = "HEARERS" // other systems, which read events
	accountSystem  = "SYS"     // no user
)

// The longest time to an answer: the longest execution of an intent, and a delegation to a task, which ends up to
// five minutes after its step.
// The server drops later replies.
const (
	intentTime     = 15 * time.Minute
	delegationTime = time.Hour + 5*time.Minute
)

// account, and the types below it, are the accounts part of a nats-server configuration; their
// JSON is legal there. The users of a cluster are those of rights.go, one for each connection of
// a process (cluster.go).
type account struct {
	JetStream string   `json:"jetstream,omitempty"`
	Exports   []export `json:"exports,omitempty"`
	Imports   []imp    `json:"imports,omitempty"`
	Users     []user   `json:"users,omitempty"` // of a cluster; in process, users are authenticated by authority
}

type export struct {
	Service   string   `json:"service"`
	Response  string   `json:"response_type,omitempty"`
	Threshold string   `json:"response_threshold,omitempty"`
	Accounts  []string `json:"accounts"`
}

type imp struct {
	Service source `json:"service"`
	To      string `json:"to,omitempty"` // its local name; empty: the same
}

type source struct {
	Account string `json:"account"`
	Subject string `json:"subject"`
}

// Subjects of $SRV (discovery of micro services) and of requests across accounts.
const (
	discovery = "$SRV.>"
	execAll   = "writ.exec.>"
	turnAll   = "writ.turn.>"
	eventsAll = "writ.events.>"
)

// JetStream requests allowed to a reader of frames: a consumer of its own on the one stream,
// filtered to turns. An account without JetStream has a $JS.API of its own, which refuses
// everything, so these requests have another name there.
const (
	jetStreamAPI = "$JS.API."
	framesStream = "STREAM.CREATE." + bus.FramesStream // by a router, as are info and purge
	framesInfo   = "STREAM.INFO." + bus.FramesStream
	framesPurge  = "STREAM.PURGE." + bus.FramesStream
	framesCreate = "CONSUMER.CREATE." + bus.FramesStream + ".*." + turnAll
	framesNext   = "CONSUMER.MSG.NEXT." + bus.FramesStream + ".*"
	framesDelete = "CONSUMER.DELETE." + bus.FramesStream + ".*"
)

// eventsCrossings are the requests to the stream of events allowed to the publisher and to
// readers.
func eventsCrossings() []crossing {
	out := []crossing{
		{subject: eventsAll, account: accountEvents, by: []string{accountTeller}},
		{subject: "$JS.ACK." + bus.EventsStream + ".*.>", account: accountEvents, by: []string{accountHearers}},
	}
	ask := func(what string, stream bool, by ...string) {
		out = append(out, crossing{subject: jetStreamAPI + what, called: bus.EventsAPI + "." + what, account: accountEvents, by: by, stream: stream})
	}
	for _, verb := range []string{"STREAM.CREATE.", "STREAM.INFO.", "STREAM.MSG.GET.", "STREAM.PURGE."} {
		ask(verb+bus.EventsStream, false, accountTeller)
	}
	// The publisher measures the shares of tenants.
	ask("CONSUMER.CREATE."+bus.EventsStream+".*."+eventsAll, false, accountHearers, accountTeller)
	ask("CONSUMER.INFO."+bus.EventsStream+".*", false, accountHearers)
	ask("CONSUMER.MSG.NEXT."+bus.EventsStream+".*", true, accountHearers, accountTeller)
	ask("CONSUMER.DELETE."+bus.EventsStream+".*", false, accountHearers, accountTeller)
	return out
}

// crossing is a service of one account with the accounts that may request it.
type crossing struct {
	subject, account string
	by               []string
	called           string        // its name for requesters; empty: the same
	stream           bool          // more than one answer
	within           time.Duration // of the answer; 0: the server's default
}

// crossings are all paths from one account into another.
func crossings() []crossing {
	signers := []string{accountGateway, accountManager, accountPlanner, accountTask, accountRuns}
	gateway, manager := []string{accountGateway}, []string{accountManager}
	drivers := []string{accountManager, accountRuns}
	core, frames := []string{accountCore}, []string{accountReaders, accountCore} // a router measures the shares of tenants
	return append(eventsCrossings(), []crossing{
		{subject: bus.Intents, account: accountCore, by: signers, within: intentTime},
		{subject: bus.Batches, account: accountCore, by: signers, within: intentTime},
		{subject: bus.DirectoryAPIKey, account: accountCore, by: gateway},
		{subject: bus.DirectoryUser, account: accountCore, by: gateway},
		{subject: bus.DirectoryRegistry, account: accountCore, by: gateway},
		{subject: bus.PlansSilent, account: accountCore, by: gateway},
		// One way: the stream FRAMES stores them, and there are no replies. Only drivers, routers and
		// the gateway publish frames, so that a compromised task or planner cannot answer the user.
		{subject: turnAll, account: accountFrames, by: []string{accountGateway, accountManager, accountRuns, accountCore}},
		{subject: jetStreamAPI + framesStream, called: bus.FramesAPI + framesStream, account: accountFrames, by: core},
		{subject: jetStreamAPI + framesInfo, called: bus.FramesAPI + framesInfo, account: accountFrames, by: core},
		{subject: jetStreamAPI + framesPurge, called: bus.FramesAPI + framesPurge, account: accountFrames, by: core},
		{subject: jetStreamAPI + framesCreate, called: bus.FramesAPI + framesCreate, account: accountFrames, by: frames},
		{subject: jetStreamAPI + framesNext, called: bus.FramesAPI + framesNext, account: accountFrames, by: frames, stream: true},
		{subject: jetStreamAPI + framesDelete, called: bus.FramesAPI + framesDelete, account: accountFrames, by: frames},
		{subject: bus.Agent(Manager), account: accountAgents, by: gateway},
		{subject: bus.Grant(Manager, everyProcess), account: accountAgents, by: gateway},
		{subject: bus.FindRun(Manager), account: accountAgents, by: []string{accountGateway, accountCore}},
		{subject: bus.Agent(Workflow), account: accountAgents, by: gateway},
		{subject: bus.FindRun(Workflow), account: accountAgents, by: []string{accountGateway, accountCore}},
		{subject: bus.Grant(Workflow, everyProcess), account: accountAgents, by: gateway},
		{subject: bus.ClientPlans, account: accountAgents, by: gateway},
		{subject: bus.Prompts, account: accountAgents, by: gateway, within: delegationTime},
		{subject: bus.Produce(Manager), account: accountAgents, by: gateway, within: delegationTime},
		{subject: bus.Produce(Planner), account: accountAgents, by: manager, within: delegationTime},
		{subject: bus.ClientCalls(everyProcess), account: accountAgents, by: gateway, within: intentTime},
		{subject: bus.Agent(Planner), account: accountAgents, by: manager, within: delegationTime},
		{subject: bus.AgentInstance(Planner, everyProcess), account: accountAgents, by: manager, stream: true, within: delegationTime},
		{subject: bus.Grant(Planner, everyProcess), account: accountAgents, by: manager},
		{subject: bus.Agent(Task), account: accountAgents, by: drivers, within: delegationTime},
		{subject: bus.AgentInstance(Task, everyProcess), account: accountAgents, by: drivers, stream: true, within: delegationTime},
		{subject: bus.Grant(Task, everyProcess), account: accountAgents, by: drivers},
		{subject: execAll, account: accountExec, by: core, within: intentTime},
		{subject: bus.Reports(everyProcess), account: accountExec, by: core},
		{subject: bus.CallerKeys, account: accountExec, by: gateway},
		{subject: bus.Logs(everyProcess), account: accountExec, by: gateway},
		{subject: discovery, account: accountExec, by: core, stream: true},
	}...)
}

// everyProcess stands for each process of a role.
const everyProcess = "*"

// accounts returns all accounts with their exports and imports.
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
		at(c.account).Exports = append(at(c.account).Exports, e)
		for _, by := range c.by {
			at(by).Imports = append(at(by).Imports, imp{source{c.account, c.subject}, c.called})
		}
	}
	return out
}

// imports are the subjects of other accounts that an account may request.
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
