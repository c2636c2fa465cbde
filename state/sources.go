package state

import (
	"encoding/json"
	"maps"
	"strings"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// A plan has the sources whose content its intents have read. They only grow: with the outcomes of
// its intents, and when it is opened with those of whatever it goes on from.

// labelled are the sources of what outlives a plan: an artifact by "tenant/cas://…", or a session by
// "tenant/user/session".
type labelled struct {
	Sources []intents.Source `json:"sources,omitempty"`
	At      time.Time        `json:"at"` // when it was last written
}

// fresh are those sources, if they were written lately.
func (l labelled) fresh(at time.Time) []intents.Source {
	if !at.Before(l.At.Add(labelKept)) {
		return nil
	}
	return l.Sources
}

// labelKept is how long decisions rely on such sources. The state has them a little longer, so that
// a decision, its commit and an auditor see the same.
const labelKept = PlanKept - time.Hour

const typeArtifactPut = "artifact.put"

// subjectSources are the sources of a plan.
func subjectSources(tenant, plan string) storage.Subject {
	return storage.Subject("sources/" + tenant + "/" + plan)
}

// subjectArtifact are the sources of an artifact.
func subjectArtifact(tenant, ref string) storage.Subject {
	return storage.Subject("artifact/" + tenant + "/" + ref)
}

// addSources adds sources to a plan, and to the session that it is in.
func (s *State) addSources(p *plan, sources []intents.Source, at time.Time) {
	p.Sources = intents.JoinSources(p.Sources, sources)
	if name := p.inSession(); name != "" && len(p.Sources) > 0 {
		s.sessions[name] = labelled{intents.JoinSources(s.sessions[name].fresh(at), p.Sources), at}
	}
}

// inherit gives a new plan the sources of its session, and of others that it goes on from.
func (s *State) inherit(p *plan, o Intent, others ...[]intents.Source) {
	s.addSources(p, intents.JoinSources(append(others, s.sessions[p.inSession()].fresh(o.At))...), o.At)
}

// keepArtifact notes the sources of an artifact that a plan has made.
func (s *State) keepArtifact(p *plan, x *openIntent, out intents.Outcome, at time.Time) {
	var made catalog.ArtifactPutResult
	if x.Type != typeArtifactPut || out.Status != intents.Done || out.Result == nil || json.Unmarshal(out.Result, &made) != nil {
		return
	}
	name := x.Tenant + "/" + made.Artifact
	s.artifacts[name] = labelled{intents.JoinSources(s.artifacts[name].fresh(at), p.Sources), at}
}

// sweepLabels removes what no decision relies on any more.
func (s *State) sweepLabels() {
	old := func(_ string, l labelled) bool { return s.removable(l.At) }
	maps.DeleteFunc(s.artifacts, old)
	maps.DeleteFunc(s.sessions, old)
}

// Missing is the reference of an input that does not exist yet.
const Missing = ""

// Sources are those of a plan and of what one of its intents names, at the time of a decision. They
// are reads of the decision. An artifact that no plan made lately is somebody's document; of what
// does not exist yet nothing is known.
func (v *View) Sources(tenant, plan string, refs []string, now time.Time) []intents.Source {
	v.s.mu.RLock()
	defer v.s.mu.RUnlock()
	var sets [][]intents.Source
	if plan != "" {
		v.addRead(subjectSources(tenant, plan))
		if p := v.s.plans[tenant+"/"+plan]; p != nil {
			sets = append(sets, p.Sources)
		}
	}
	for _, ref := range refs {
		switch {
		case ref == Missing:
			sets = append(sets, intents.UnknownSources())
		case strings.HasPrefix(ref, "cas://"):
			v.addRead(subjectArtifact(tenant, ref))
			made, known := v.s.artifacts[tenant+"/"+ref]
			if !known || !now.Before(made.At.Add(labelKept)) {
				made.Sources = intents.DocumentSource(ref)
			}
			sets = append(sets, made.Sources)
		}
	}
	return intents.JoinSources(sets...)
}

// SourcesOf are the sources of a plan now, unknown ones if the state does not have the plan.
func (s *State) SourcesOf(tenant, plan string) []intents.Source {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if p := s.plans[tenant+"/"+plan]; p != nil {
		return p.Sources
	}
	return intents.UnknownSources()
}

// writesOfSources lists what an outcome writes that adds to the sources of its plan, or makes an
// artifact.
func (o *Intent) writesOfSources(out intents.Outcome) (writes []storage.Subject) {
	if len(out.Sources) > 0 {
		writes = append(writes, subjectSources(o.Tenant, o.Context.PlanID))
	}
	var made catalog.ArtifactPutResult
	if o.Type == typeArtifactPut && json.Unmarshal(out.Result, &made) == nil {
		writes = append(writes, subjectArtifact(o.Tenant, made.Artifact))
	}
	return writes
}
