package agents

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"

	"aob.dev/writ/intents/catalog"
)

// maxWireName is the maximum length of the name of a tool in a request to a model. Clients put
// their own name of a server before it, as in mcp__writ__search, and models take 64 characters.
const maxWireName = 53

// hashDigits is the number of digits of the hash of its full name that a tool's name ends with
// if it would otherwise be too long or another tool's.
const hashDigits = 8

// ClientTools are the names of the tools of MCP clients that are no skills, beside those of agents, which
// begin with AskTool.
var ClientTools = []string{"run_task", "handle_message", "get_result", "read_lines", "search_tools", "describe_tool", "read_tool", "call_tool"}

// AskTool is followed by the name of an agent.
const AskTool = "ask_"

var notWire = regexp.MustCompile(`[^A-Za-z0-9_-]`)

// WireName is the name for models and MCP clients of the skill of an id, <server>.<tool>, that is
// approved beside others: that of the tool; <server>__<tool> if another skill has that; and that
// with digits of a hash if it is still ambiguous. A skill keeps the name of its first approval.
func WireName(id string, taken func(name string) bool) string {
	server, tool, _ := strings.Cut(id, ".")
	if tool == "" {
		server, tool = "", id
	}
	full := server + "__" + tool
	for _, name := range []string{WireWord(tool, id), WireWord(full, id), cutName(notWire.ReplaceAllString(full, "_"), id)} {
		if !taken(name) {
			return name
		}
	}
	name := fullHash(id)
	for taken(name) { // a server named a tool so
		name = fullHash(name)
	}
	return name
}

// WireNames are the names of skills for models and MCP clients: that of its approval for each, or
// another one, as for WireName, if a built-in tool has it. They do not depend on the order of the
// skills. The record has the skills' ids.
func WireNames(skills []catalog.Manifest, builtin map[string]bool) []string {
	names := make([]string, len(skills))
	for i, m := range skills {
		names[i] = cmp.Or(m.WireName, WireWord(m.Tool(), fullName(m)))
	}
	rename := func(to func(m catalog.Manifest) string) {
		count := map[string]int{}
		for _, name := range names {
			count[name]++
		}
		for i, name := range names {
			if count[name] > 1 || builtin[name] {
				names[i] = to(skills[i])
			}
		}
	}
	rename(func(m catalog.Manifest) string { return WireWord(withServer(m), fullName(m)) })
	rename(func(m catalog.Manifest) string {
		return cutName(notWire.ReplaceAllString(withServer(m), "_"), fullName(m))
	})
	// A server may name its tools so that they clash with generated names. Each round leaves at
	// least one fewer of these.
	for range skills {
		rename(func(m catalog.Manifest) string { return fullHash(fullName(m)) })
	}
	return names
}

func withServer(m catalog.Manifest) string { return m.Endpoint + "__" + m.Tool() }

func fullName(m catalog.Manifest) string { return m.Endpoint + "." + m.Tool() }

// WireWord replaces forbidden characters in the name of a tool, and cuts one that is too long: it
// then ends with digits of the hash of id.
func WireWord(name, id string) string {
	name = notWire.ReplaceAllString(name, "_")
	if len(name) > maxWireName {
		return cutName(name, id)
	}
	return name
}

// cutName ends a name with digits of the hash of the skill's full name.
func cutName(name, id string) string {
	return name[:min(len(name), maxWireName-1-hashDigits)] + "_" + fullHash(id)[:hashDigits]
}

// fullHash is the hash of a skill's id, in as many digits as a name has.
func fullHash(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])[:maxWireName]
}
