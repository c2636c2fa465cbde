package state

import (
	"aob.dev/writ/agentic/agents"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// A remote agent is an agent of the registry that a server answers for. What its task may
// do is one call: <agent>.handle_message, which acts once. Its pin stands for the approval of
// the operator who put the agent in force. It is that of the registry which the plan began
// with, belongs to the tasks of the agent alone, and is in no directory of skills.

// runs says whether people can have an agent carry out what they ask.
func (s *State) runs(a agents.Scope) bool {
	return a.Runnable() && (!a.Remote || s.rules >= intents.RulesAsks)
}

// remote makes a remote agent of what every agent is.
func (s *State) remote(r *runs, a agents.Scope) (*runs, []string, error) {
	r.Remote = &intents.Pin{Skill: a.Skills[0], Digest: a.Digest, Effect: string(catalog.Once), Kind: intents.KindAgent}
	if r.Text != "" { // else the router reads where it is
		file, err := agents.Parse([]byte(r.Text))
		if err != nil {
			return nil, nil, err
		}
		r.Remote.Server = file.Endpoint
	}
	r.Types = append([]string{"agent.get"}, a.Types...) // who it is, its task asks as others do
	r.Tokens = 0                                        // the models that it asks are not ours
	return r, a.Skills, nil
}
