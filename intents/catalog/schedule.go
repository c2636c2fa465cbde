package catalog

import (
	"encoding/json"
	"time"

	"aob.dev/writ/intents"
)

var scheduleRows = []Row{
	{Type: "schedule.put", Title: "Have a request carried out later", Capability: "schedules:write", Signers: schedulers, Executor: ExecutorRouter, Effect: Idempotent},
	{Type: "schedule.list", Title: "List the user's schedules", Capability: CapabilitySchedules, Signers: []intents.Role{intents.RoleTask}, Executor: ExecutorRouter, Effect: Pure},
	{Type: "schedule.delete", Title: "Delete a schedule", Capability: "schedules:write", Signers: schedulers, Executor: ExecutorRouter, Effect: Idempotent},
	{Type: "action", Title: "Have the user's client do something", Capability: "actions:show", Signers: []intents.Role{intents.RoleTask}, Executor: ExecutorRouter, Effect: Idempotent},
}

var schedulers = []intents.Role{intents.RoleTask, intents.RoleGateway}

// MaxSchedules is how many schedules a user may have.
const MaxSchedules = 100

// SchedulePut are the arguments of schedule.put: a request that is carried out again and
// again (Cron), or once (At).
type SchedulePut struct {
	ID       string `json:"id,omitempty"`    // empty: a new one
	Agent    string `json:"agent,omitempty"` // who carries it out; empty: a planner does
	Input    string `json:"input"`
	Cron     string `json:"cron,omitempty"`
	TimeZone string `json:"time_zone,omitempty"` // of the request, and of Cron; empty: UTC
	At       string `json:"at,omitempty"`        // RFC 3339
}

// Schedule is a request that is to be carried out.
type Schedule struct {
	SchedulePut
	Next time.Time `json:"next"` // when it is due

	// ByAgent reports that an agent has put it, so that the request is in a model's words.
	ByAgent bool `json:"by_agent,omitempty"`

	Failed intents.Code `json:"failed,omitempty"` // why it is not carried out any more; the gateway that tried it says so

	// Its user does not see the rest.
	Tenant string   `json:"tenant,omitempty"`
	User   string   `json:"user,omitempty"`
	Roles  []string `json:"roles,omitempty"`  // of the grant of the intent that put it
	Client string   `json:"client,omitempty"` // act.client of that grant
	// Sources that the plan had read whose agent put it.
	Sources []intents.Source `json:"sources,omitempty"`
	Put     int64            `json:"put,omitempty"` // position of that intent, which has the request
}

// ScheduleNext is the result of schedule.put.
type ScheduleNext struct {
	ID   string    `json:"id"`
	Next time.Time `json:"next"`
}

// ScheduleCount is the result of schedule.list. The answer has the schedules beside it, so that no
// record repeats their texts.
type ScheduleCount struct {
	Schedules int `json:"schedules"`
}

// ScheduleList are schedules of a user, the next one first.
type ScheduleList struct {
	Schedules []Schedule `json:"schedules"`
}

// ScheduleDelete are the arguments of schedule.delete.
type ScheduleDelete struct {
	ID string `json:"id"`
}

// Firing is a time of a schedule that a plan is opened for.
type Firing struct {
	ID  string    `json:"id"`
	Due time.Time `json:"due"`
}

// Action are the arguments of action: what a client of the user is to do or show.
type Action struct {
	Type    string          `json:"type"`
	Payload json.RawMessage `json:"payload,omitempty"` // an object
}
