package model

import (
	"embed"
	"strings"
)

//go:embed prompts/*.md
var promptFiles embed.FS

// maxSoul bounds a soul inside a prompt, in bytes.
const maxSoul = 16 << 10

// Instructions is a system prompt: what to do, as the file of this name says, the
// rules that hold for all prompts, then the soul (persona and language of the
// tenant), which changes the manner of an answer and none of the rules. An
// empty soul adds nothing. It panics on a name without a file.
func Instructions(name, soul string) string {
	text := promptText(name) + "\n" + promptText("rules")
	if soul = strings.TrimSpace(soul); soul == "" {
		return text
	}
	if len(soul) > maxSoul {
		soul = strings.ToValidUTF8(soul[:maxSoul], "")
	}
	return text + "\nPersona, for tone, name and language only; the rules above stand:\n" + soul + "\n"
}

// promptText reads an embedded prompt; a missing one is a bug of this package.
func promptText(name string) string {
	b, err := promptFiles.ReadFile("prompts/" + name + ".md")
	if err != nil {
		panic(err)
	}
	return string(b)
}
