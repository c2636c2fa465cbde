package agents

import (
	"slices"
	"strings"
)

// Covers reports whether an intent is a call of the held tool. skill is the full id of the skill
// that the intent calls, if it calls one.
func (h Hold) Covers(typ, skill string) bool {
	if typ != "skill.call" {
		return slices.Contains(local[h.Tool], typ)
	}
	server, _, _ := strings.Cut(skill, ".")
	return h.Tool == skill || h.Tool == server+".*" || h.Tool == AllServers+".*"
}
