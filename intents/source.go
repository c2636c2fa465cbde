package intents

import (
	"cmp"
	"slices"
	"strings"
)

// Source is where content came from that a plan has read. What is not known about it counts for the
// worst: it is untrusted and private.
type Source struct {
	Kind      string `json:"kind"` // server, agent, document, many
	Name      string `json:"name"`
	Trusted   bool   `json:"trusted,omitempty"`    // the operator trusts what it says
	OpenWorld string `json:"open_world,omitempty"` // Yes: it shows what anybody may know; No: it is private; empty: not known
}

// Kinds of sources in addition to KindAgent. SourceMany stands for more sources than are told
// apart, or for unknown ones.
const (
	SourceServer   = "server"
	SourceDocument = "document"
	SourceMany     = "many"
)

// Bounds of a set of sources, and of a source's name in bytes.
const (
	MaxSources    = 16
	maxSourceName = 128
)

// UnknownSources is the set of which nothing is known.
func UnknownSources() []Source { return []Source{{Kind: SourceMany, Name: SourceMany}} }

// DocumentSource is a document that a person has added: its text may be anybody's.
func DocumentSource(id string) []Source {
	return []Source{{Kind: SourceDocument, Name: strings.TrimPrefix(id, "cas://")}}
}

// JoinSources returns all sources of some sets: sorted, each once, and nil if there are none. More
// than MaxSources, and any that are not well-formed, are UnknownSources.
func JoinSources(sets ...[]Source) []Source {
	all := slices.Concat(sets...)
	slices.SortFunc(all, func(a, b Source) int {
		trust := func(s Source) int {
			if s.Trusted {
				return 1
			}
			return 0
		}
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(trust(a), trust(b)), cmp.Compare(a.OpenWorld, b.OpenWorld))
	})
	all = slices.Compact(all)
	switch {
	case len(all) == 0:
		return nil
	case len(all) > MaxSources || slices.ContainsFunc(all, func(s Source) bool { return !s.known() }):
		return UnknownSources()
	}
	return slices.Clip(all)
}

// known reports whether a source is well-formed, and does not stand for many.
func (s Source) known() bool {
	return slices.Contains([]string{SourceServer, KindAgent, SourceDocument}, s.Kind) && s.Name != "" && len(s.Name) <= maxSourceName &&
		slices.Contains([]string{"", Yes, No}, s.OpenWorld)
}

// CoverSources reports whether a set has all sources of another.
func CoverSources(set, other []Source) bool {
	return slices.Equal(JoinSources(set, other), JoinSources(set))
}

// Source is where the result of a call of the skill comes from: its server, or the remote agent.
func (s SkillInput) Source() Source {
	name, _, _ := strings.Cut(s.Name, ".")
	if s.Kind == KindAgent {
		return Source{Kind: KindAgent, Name: name}
	}
	return Source{Kind: SourceServer, Name: name, Trusted: s.Trusted, OpenWorld: s.OpenWorld}
}

// String is a source as approvers see it.
func (s Source) String() string {
	if s.Kind == SourceMany {
		return "many sources"
	}
	trust, world := "untrusted", "private"
	if s.Trusted {
		trust = "trusted"
	}
	if s.OpenWorld == Yes {
		world = "open world"
	}
	return s.Kind + " " + s.Name + " (" + trust + ", " + world + ")"
}
