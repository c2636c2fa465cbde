package agents

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"

	"aob.dev/writ/intents/catalog"
)

// maxWireName is the maximum length of the name of a tool in a request to a model.
const maxWireName = 64

// hashDigits is the number of digits of the hash of its full name that a tool's name ends with
// if it would otherwise be too long or another tool's.
const hashDigits = 8

var notWire = regexp.MustCompile(`[^A-Za-z0-9_-]`)

// WireNames are the names of skills for models and MCP clients: the name of the tool;
// <server>__<name> for each of several with the same name, or with that of a built-in tool; and
// that with digits of a hash if it is still ambiguous. They do not depend on the order of the
// skills. The record has the skills' ids.
func WireNames(skills []catalog.Manifest, builtin map[string]bool) []string {
	names := make([]string, len(skills))
	for i, m := range skills {
		names[i] = wireName(m.Tool(), m)
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
	rename(func(m catalog.Manifest) string { return wireName(withServer(m), m) })
	rename(func(m catalog.Manifest) string { return cutName(notWire.ReplaceAllString(withServer(m), "_"), m) })
	// A server may name its tools so that they clash with generated names. Each round leaves at
	// least one fewer of these.
	for range skills {
		rename(fullHash)
	}
	return names
}

func withServer(m catalog.Manifest) string { return m.Endpoint + "__" + m.Tool() }

// wireName replaces forbidden characters in a name, and cuts one that is too long.
func wireName(name string, m catalog.Manifest) string {
	name = notWire.ReplaceAllString(name, "_")
	if len(name) > maxWireName {
		return cutName(name, m)
	}
	return name
}

// cutName ends a name with digits of the hash of the skill's full name.
func cutName(name string, m catalog.Manifest) string {
	return name[:min(len(name), maxWireName-1-hashDigits)] + "_" + fullHash(m)[:hashDigits]
}

// fullHash is the hash of a skill's id, <server>.<tool>, in maxWireName digits.
func fullHash(m catalog.Manifest) string {
	sum := sha256.Sum256([]byte(m.Endpoint + "." + m.Tool()))
	return hex.EncodeToString(sum[:])
}
