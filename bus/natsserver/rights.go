package natsserver

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"aob.dev/writ/bus"
)

// The roles known to every server. Executors are roles of their own names.
const (
	Gateway  = "gateway"
	Manager  = "manager"
	Planner  = "planner"
	Task     = "task"
	Workflow = "workflow" // runs workflows
	Router   = "router"
	Recorder = "recorder" // reads the journal, and reports the position that the documents have reached
	Frames   = "frames"   // the gateway's second connection: reads display frames and does nothing else
	Logs     = "logs"     // the executor that receives the log lines of others
	Skills   = "skills"   // the executor that reports what skill servers declare
	Teller   = "teller"   // publishes events for other systems and does nothing else
	Hearer   = bus.Hearer // another system: its processes are called TENANT_NAME and read events of that tenant
)

// right lists what one connection of one process may do; all else is denied.
type right struct {
	account   string
	publish   []string
	subscribe []string      // subjects, with a queue group after a blank where only its members may subscribe
	answers   time.Duration // time within which it may answer requests it received; 0: it may not answer
	replies   int           // to one request; 0: one
}

// rightsOf returns the rights of a role's process: asks for its requesting connection, serves for
// its serving one. A role with one account for both has the same right twice; nil: it does not
// request, or does not serve.
func rightsOf(role, instance string, executors map[string][]string) (asks, serves *right) {
	inbox := inbox(bus.ProcessUser(role, instance))
	switch role {
	case Gateway:
		return asker(accountGateway, inbox), nil
	case Frames:
		return asker(accountReaders, inbox), nil
	case Teller:
		return asker(accountTeller, inbox), nil
	case Hearer:
		return hearer(instance, inbox), nil
	case Manager:
		serves := driver(role, instance)
		serves.subscribe = append(serves.subscribe, queued(bus.ClientPlans, role), queued(bus.Produce(role), role), queued(bus.Prompts, role))
		return asker(accountManager, inbox), serves
	case Workflow: // its tasks are the same as those of every plan
		return asker(accountRuns, inbox), driver(role, instance)
	case Planner:
		serves := agent(role, instance)
		serves.subscribe = append(serves.subscribe, queued(bus.Produce(role), role))
		serves.replies = bus.MaxReplies // it shows an answer while it is written
		return asker(accountPlanner, inbox), serves
	case Task:
		serves := agent(role, instance)
		serves.subscribe = append(serves.subscribe, queued(bus.ClientCalls(instance), role))
		serves.replies = bus.MaxReplies // it reports progress while it works
		return asker(accountTask, inbox), serves
	case Router:
		r := router(instance, inbox)
		return r, r
	case Recorder:
		r := recorder(inbox)
		return r, r
	}
	types, ok := executors[role]
	if !ok {
		return nil, nil
	}
	r := executor(role, instance, types)
	switch role {
	case Skills:
		r.subscribe = append(r.subscribe, queued(bus.SkillVersions, role), queued(bus.SkillAnswers, role), queued(bus.CallerKeys, instance))
	case Logs:
		r.subscribe = append(append(r.subscribe, bus.Log("*"), queued(bus.Logs(instance), role)), discoverable(bus.LogStreams)...)
		r.replies = 2 // two services share its connection, and both answer requests to all
	}
	return r, r
}

// asker may publish to the imports of its account, and receives the replies.
func asker(account, inbox string) *right {
	return &right{account: account, publish: imports(account), subscribe: []string{inbox}}
}

// hearer may have one consumer, of its own name, on the subjects of its tenant. Names contain the
// tenant, so that no consumer of another tenant may be asked for messages.
func hearer(name, inbox string) *right {
	at := strings.LastIndexByte(name, '_')
	if at < 1 {
		return nil
	}
	own := bus.EventsAPI + ".CONSUMER."
	of := "." + bus.EventsStream + "." + name
	return &right{
		account: accountHearers,
		publish: []string{
			own + "CREATE" + of + "." + bus.Events(name[:at]), own + "INFO" + of, own + "MSG.NEXT" + of, own + "DELETE" + of, "$JS.ACK" + of + ".>",
		},
		subscribe: []string{inbox},
	}
}

// agent accepts delegations, as one of its role and as this process, and fresh grants as this
// process alone.
func agent(role, instance string) *right {
	return &right{
		account: accountAgents,
		subscribe: append([]string{
			queued(bus.Agent(role), role), queued(bus.AgentInstance(role, instance), role), queued(bus.Grant(role, instance), role),
		}, discoverable(role)...),
		answers: delegationTime,
	}
}

// driver is an agent that runs plans: it also receives requests for the driver of a plan, in a
// group of its own.
func driver(role, instance string) *right {
	r := agent(role, instance)
	r.subscribe = append(r.subscribe, queued(bus.FindRun(role), instance))
	return r
}

// executor may receive intents of its own types, and questions about them, reply, and publish log lines meanwhile; it can
// request nothing. group is the queue group of the process alone.
func executor(name, group string, types []string) *right {
	subjects := append(discoverable(name), queued(bus.Reports(name), group))
	for _, typ := range types {
		subjects = append(subjects, queued(bus.Exec(typ), name))
	}
	return &right{account: accountExec, publish: []string{bus.Log(name)}, subscribe: subjects, answers: intentTime}
}

// Subjects that routers of a cell write.
const (
	journalAll = "journal.>"
	keysAll    = "keys.>"
)

// router serves every request that the others do, too: one that is stopped may be the only one that
// receives it. It sends submissions to the one that decides.
func router(instance, inbox string) *right {
	r := &right{
		account:   accountCore,
		publish:   append(imports(accountCore), "$JS.API.>", "$JS.ACK.>", "$JS.FC.>", "$KV."+bus.Bucket+".>", journalAll, keysAll, bus.Intents, bus.Batches),
		subscribe: []string{discovery, inbox},
		answers:   intentTime,
	}
	for _, subject := range []string{bus.Intents, bus.Batches, bus.DirectoryAPIKey, bus.DirectoryUser, bus.DirectoryRegistry, bus.PlansSilent} {
		r.subscribe = append(r.subscribe, queued(subject, instance))
	}
	return r
}

// recorder reads the journal and writes to the bucket of the cell. Its reads name the stream, so
// it reads no other one; it publishes no intent and answers nobody.
func recorder(inbox string) *right {
	r := &right{account: accountCore, subscribe: []string{inbox}}
	bucket := "KV_" + bus.Bucket
	for _, stream := range []string{bus.JournalStream, bus.KeyStream, bucket} {
		for _, verb := range []string{"STREAM.INFO.%s", "STREAM.MSG.GET.%s", "DIRECT.GET.%s", "DIRECT.GET.%s.>"} {
			r.publish = append(r.publish, jetStreamAPI+fmt.Sprintf(verb, stream))
		}
	}
	for _, verb := range []string{"CREATE.%s", "CREATE.%s.>", "INFO.%s.*", "MSG.NEXT.%s.*", "DELETE.%s.*"} {
		for _, stream := range []string{bus.JournalStream, bus.KeyStream} {
			r.publish = append(r.publish, jetStreamAPI+"CONSUMER."+fmt.Sprintf(verb, stream))
		}
	}
	r.publish = append(r.publish, "$JS.ACK."+bus.JournalStream+".>", "$JS.ACK."+bus.KeyStream+".>", "$JS.FC.>", "$KV."+bus.Bucket+".>")
	return r
}

// queued is a subscription as a member of a queue group: without a group, or in another one, a
// process would receive requests that others answer.
func queued(subject, group string) string { return subject + " " + group }

func inbox(user string) string { return bus.InboxPrefix(user) + ".>" }

// discoverable are the subjects on which a micro service describes itself: those for all
// services, and those for its own name.
func discoverable(user string) []string {
	var out []string
	name := bus.ServiceName(user)
	for _, verb := range []string{"PING", "INFO", "STATS"} {
		out = append(out, "$SRV."+verb, "$SRV."+verb+"."+name, "$SRV."+verb+"."+name+".*")
	}
	return out
}

// user returns the right in the server's form. An empty list is written as one that allows
// nothing: a missing list would allow everything.
func (r *right) user(name, password string) *server.User {
	p := &server.Permissions{
		Publish:   &server.SubjectPermission{Allow: append([]string{}, r.publish...)},
		Subscribe: &server.SubjectPermission{Allow: slices.Clone(r.subscribe)},
	}
	if r.answers > 0 {
		p.Response = &server.ResponsePermission{MaxMsgs: max(r.replies, 1), Expires: r.answers}
	}
	return &server.User{Username: name, Password: password, Account: &server.Account{Name: r.account}, Permissions: p}
}
