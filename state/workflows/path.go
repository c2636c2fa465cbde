package workflows

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"aob.dev/writ/schemas"
)

// Roots of paths.
const (
	rootRun     = "run_id"
	rootInputs  = "inputs"
	rootNodes   = "nodes"
	partOutputs = "outputs"
	partIntent  = "intent"
)

// success is the output of every node that has ended.
const success = "success"

// path locates a value of a run: run_id, an input, an output of a node, or the intent_id of a
// node's intent. Tokens are names of members and numbers of elements.
type path struct {
	root   string // one of the roots; for nodes, one of the parts
	node   string
	tokens []any
}

// pointer is the path as a JSON Pointer into the values of a run.
func (p path) pointer() string {
	switch p.root {
	case rootRun:
		return "/" + rootRun
	case partIntent:
		return "/" + rootNodes + "/" + schemas.Escape(p.node) + "/" + partIntent
	case partOutputs:
		return "/" + rootNodes + "/" + schemas.Escape(p.node) + "/" + partOutputs + pointerOf(p.tokens)
	}
	return "/" + p.root + pointerOf(p.tokens)
}

// kept is the part that an outcome retains so that the path can be read: the members up to the
// first element of an array.
func (p path) kept() string {
	for i, t := range p.tokens {
		if _, ok := t.(int); ok {
			return pointerOf(p.tokens[:i])
		}
	}
	return pointerOf(p.tokens)
}

func pointerOf(tokens []any) string {
	var b strings.Builder
	for _, t := range tokens {
		fmt.Fprintf(&b, "/%s", schemas.Escape(fmt.Sprint(t)))
	}
	return b.String()
}

// pathOf is the path of an expression's tokens, which begin with a root.
func pathOf(tokens []any) (path, string) {
	text := func(i int) string {
		if i >= len(tokens) {
			return ""
		}
		s, _ := tokens[i].(string)
		return s
	}
	switch root := text(0); {
	case root == rootRun && len(tokens) == 1:
		return path{root: rootRun}, ""
	case root == rootInputs && text(1) != "":
		return path{root: rootInputs, tokens: tokens[1:]}, ""
	case root == rootNodes && text(2) == partIntent && len(tokens) == 3:
		return path{root: partIntent, node: text(1)}, ""
	case root == rootNodes && text(2) == partOutputs && text(3) != "":
		return path{root: partOutputs, node: text(1), tokens: tokens[3:]}, ""
	}
	return path{}, "names no value: write run_id, inputs.<name>, nodes.<id>.outputs.<name> or nodes.<id>.intent"
}

// part of a text with templates: plain text, or a path.
type part struct {
	text string
	path *path
}

// parts of a text. $${ stands for a literal ${.
func parts(s string) (out []part, wrong string) {
	plain := ""
	for {
		i := strings.Index(s, "${")
		if i < 0 {
			break
		}
		if i > 0 && s[i-1] == '$' {
			plain, s = plain+s[:i-1]+"${", s[i+2:]
			continue
		}
		p, rest, wrong := template(s[i+2:])
		if wrong != "" {
			return nil, wrong
		}
		if plain += s[:i]; plain != "" {
			out = append(out, part{text: plain})
		}
		out, plain, s = append(out, part{path: &p}), "", rest
	}
	if plain += s; plain != "" {
		out = append(out, part{text: plain})
	}
	return out, ""
}

const badTemplate = "has a template that is no path: write ${inputs.name}, ${nodes.id.outputs.name} or ${nodes[\"id\"].outputs.list[0]}, and $${ for ${ itself"

// template reads a path up to its closing brace.
func template(s string) (p path, rest, wrong string) {
	var tokens []any
	for first := true; ; first = false {
		switch {
		case strings.HasPrefix(s, "}") && !first:
			p, wrong = pathOf(tokens)
			return p, s[1:], wrong
		case strings.HasPrefix(s, "[") && !first:
			inside, after, ok := strings.Cut(s[1:], "]")
			if !ok {
				return p, "", badTemplate
			}
			if n, err := strconv.Atoi(inside); err == nil && n >= 0 && strconv.Itoa(n) == inside {
				tokens = append(tokens, n)
			} else if name := ""; json.Unmarshal([]byte(inside), &name) == nil {
				tokens = append(tokens, name)
			} else {
				return p, "", badTemplate
			}
			s = after
		default:
			if !first {
				if s == "" || s[0] != '.' {
					return p, "", badTemplate
				}
				s = s[1:]
			}
			n := strings.IndexFunc(s, func(r rune) bool {
				return r != '_' && r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
			})
			if n <= 0 {
				return p, "", badTemplate
			}
			tokens, s = append(tokens, s[:n]), s[n:]
		}
	}
}
