package natsserver

import (
	"maps"
	"slices"

	"aob.dev/writ/internal/bus"
)

// The accounts. CORE holds the routers and the only JetStream; SYS nobody.
const (
	accountAgents = "AGENTS"
	accountExec   = "EXEC"
	accountCore   = "CORE"
	accountSystem = "SYS"
)

// The users that every server has. Executors have one each, of their own name.
const (
	Gateway = "gateway" // AGENTS
	Manager = "manager" // AGENTS
	Planner = "planner" // AGENTS
	Task    = "task"    // AGENTS
	Router  = "router"  // CORE
	Frames  = "frames"  // CORE: the gateway's second user; reads display frames and does nothing else
)

// An answer may take this long: the longest run of an order, and a delegation
// to a task. Replies later than that are dropped by the server.
const (
	orderTime      = "15m"
	delegationTime = "1h"
)

// account, and the types below it, are the accounts part of a nats-server
// configuration; their JSON is legal there.
type account struct {
	JetStream string   `json:"jetstream,omitempty"`
	Users     []user   `json:"users,omitempty"`
	Exports   []export `json:"exports,omitempty"`
	Imports   []imp    `json:"imports,omitempty"`
}

type user struct {
	User        string      `json:"user"`
	Password    string      `json:"password"`
	Permissions permissions `json:"permissions"`
}

type permissions struct {
	Publish   allow      `json:"publish"`
	Subscribe allow      `json:"subscribe"`
	Responses *responses `json:"allow_responses,omitempty"`
}

// allow lists subjects; all others are denied.
type allow struct {
	Allow []string `json:"allow"`
}

type responses struct {
	Max     int    `json:"max"`
	Expires string `json:"expires"`
}

type export struct {
	Service   string   `json:"service"`
	Response  string   `json:"response_type,omitempty"`
	Threshold string   `json:"response_threshold,omitempty"`
	Accounts  []string `json:"accounts"`
}

type imp struct {
	Service source `json:"service"`
}

type source struct {
	Account string `json:"account"`
	Subject string `json:"subject"`
}

// Subjects of $SRV (discovery of micro services) and of what crosses accounts.
const (
	discovery = "$SRV.>"
	directory = "writ.directory.*"
	execAll   = "writ.exec.>"
	turnAll   = "writ.turn.>"
	grantAll  = "writ.grant.>"
)

// accounts is the whole of who may say what to whom (DESIGN §9). executors
// names the intent types of each executor; password gives a user's.
func accounts(executors map[string][]string, password func(name string) string) map[string]account {
	exec := account{
		Exports: []export{
			{Service: execAll, Threshold: orderTime, Accounts: []string{accountCore}},
			{Service: discovery, Response: "Stream", Accounts: []string{accountCore}},
		},
	}
	for _, name := range slices.Sorted(maps.Keys(executors)) {
		exec.Users = append(exec.Users, executor(name, executors[name], password(name)))
	}
	return map[string]account{
		accountSystem: {},
		accountAgents: agents(password),
		accountExec:   exec,
		accountCore:   core(password),
	}
}

func agents(password func(string) string) account {
	crossing := []string{bus.Orders, bus.Batches, directory, bus.PlansSilent, turnAll}
	a := account{
		Users: []user{
			{Gateway, password(Gateway), permissions{
				Publish: allow{[]string{
					bus.Orders, bus.Batches, bus.DirectoryAPIKey, bus.DirectoryUser, bus.DirectoryApprovals, bus.PlansSilent,
					bus.Agent("manager"), grantAll, turnAll,
				}},
				Subscribe: allow{[]string{inbox(Gateway)}},
			}},
			agent(Manager, password(Manager), bus.Agent("planner"), bus.Agent("task"), bus.Agent("task")+".*", turnAll),
			agent(Planner, password(Planner)),
			agent(Task, password(Task)),
		},
	}
	for _, subject := range crossing {
		a.Imports = append(a.Imports, imp{source{accountCore, subject}})
	}
	return a
}

// agent is a role of the agentic layer: it seals, takes delegations on its own
// subject, and hears of fresh grants. speaks are the subjects of its delegations,
// and of frames where it may show any: only the manager may, so that a stolen
// task or planner cannot answer the user.
func agent(role, password string, speaks ...string) user {
	return user{role, password, permissions{
		Publish:   allow{append([]string{bus.Orders, bus.Batches}, speaks...)},
		Subscribe: allow{append([]string{bus.Agent(role), bus.Agent(role) + ".*", grantAll, inbox(role)}, discoverable(role)...)},
		Responses: &responses{1, delegationTime},
	}}
}

// executor may hear its own types and answer; it can begin nothing.
func executor(name string, types []string, password string) user {
	hears := append([]string{inbox(name)}, discoverable(name)...)
	for _, typ := range types {
		hears = append(hears, bus.Exec(typ))
	}
	return user{name, password, permissions{
		Publish:   allow{[]string{}},
		Subscribe: allow{hears},
		Responses: &responses{1, orderTime},
	}}
}

func core(password func(string) string) account {
	toAgents := []string{accountAgents}
	return account{
		JetStream: "enabled",
		Users: []user{
			{Router, password(Router), permissions{
				Publish:   allow{[]string{execAll, discovery, "$JS.API.>", "$JS.ACK.>", "$JS.FC.>"}},
				Subscribe: allow{[]string{bus.Orders, bus.Batches, directory, bus.PlansSilent, discovery, inbox(Router)}},
				Responses: &responses{1, orderTime},
			}},
			{Frames, password(Frames), permissions{
				Publish: allow{[]string{
					"$JS.API.CONSUMER.CREATE." + bus.FramesStream + ".*." + turnAll,
					"$JS.API.CONSUMER.MSG.NEXT." + bus.FramesStream + ".*",
					"$JS.API.CONSUMER.DELETE." + bus.FramesStream + ".*",
				}},
				Subscribe: allow{[]string{inbox(Frames)}},
			}},
		},
		Exports: []export{
			{Service: bus.Orders, Threshold: orderTime, Accounts: toAgents},
			{Service: bus.Batches, Threshold: orderTime, Accounts: toAgents},
			{Service: directory, Accounts: toAgents},
			{Service: bus.PlansSilent, Accounts: toAgents},
			{Service: turnAll, Accounts: toAgents}, // one way: the stream FRAMES listens, nobody answers
		},
		Imports: []imp{
			{source{accountExec, execAll}},
			{source{accountExec, discovery}},
		},
	}
}

func inbox(user string) string { return bus.InboxPrefix(user) + ".>" }

// discoverable are the subjects on which a micro service tells of itself: those
// for all, and those for its own name.
func discoverable(user string) []string {
	var out []string
	name := bus.ServiceName(user)
	for _, verb := range []string{"PING", "INFO", "STATS"} {
		out = append(out, "$SRV."+verb, "$SRV."+verb+"."+name, "$SRV."+verb+"."+name+".*")
	}
	return out
}
