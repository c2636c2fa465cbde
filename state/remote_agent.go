package state

import (
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state/agents"
)

// A remote agent is an agent of the registry that runs on a server. Its task may make one call:
// <agent>.handle_message, which acts once unless the agent's file says that it is idempotent. The
// operator approves its pin by putting the agent in force. The pin is that of the registry which the plan began with, belongs to the tasks of the
// agent alone, and is in no directory of skills.

// remote makes a remote agent of the data common to all agents.
func (s *State) remote(r *runs, a agents.Scope) (*runs, []string, error) {
	r.Remote = &intents.Pin{Skill: a.Skills[0], Digest: a.Digest, Effect: string(catalog.Once), Kind: intents.KindAgent}
	if a.Idempotent {
		r.Remote.Effect = string(catalog.Idempotent)
	}
	if r.Text != "" { // otherwise the router knows where to read it
		file, err := agents.Parse([]byte(r.Text))
		if err != nil {
			return nil, nil, err
		}
		r.Remote.Server = file.Endpoint
	}
	r.Types = append([]string{"agent.get"}, a.Types...) // its task fetches its definition like others
	r.Tokens = 0                                        // the models that it uses are not ours
	return r, a.Skills, nil
}
