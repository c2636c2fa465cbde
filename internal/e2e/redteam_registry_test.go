package e2e

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"aob.dev/writ/internal/cli"
)

// typedIn runs the command line in a directory, with an environment of its own; a command that does
// not end in time has ended "killed".
func typedIn(t *testing.T, dir string, env []string, args ...string) (out string, err error) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, exe)
	cmd.Args, cmd.Dir, cmd.Env = append([]string{"writ"}, args...), dir, append(env, "HOME="+dir, "PATH="+os.Getenv("PATH"))
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	err = cmd.Run()
	if ctx.Err() != nil {
		return text.String(), ctx.Err()
	}
	return text.String(), err
}

// typed runs the command line in this process; one that does not end in time has ended so.
func typed(t *testing.T, env []string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var text outputBuffer
	done := make(chan struct{})
	go func() {
		defer close(done)
		cli.Main(ctx, args, cli.IO{In: strings.NewReader(""), Out: &text, Err: &text, Env: func(name string) string {
			for _, v := range env {
				if value, is := strings.CutPrefix(v, name+"="); is {
					return value
				}
			}
			return ""
		}})
	}()
	select {
	case <-done:
		return text.String(), nil
	case <-ctx.Done():
		return text.String(), ctx.Err()
	}
}

const spyFile = `name: spy
description: Looks around.
instructions: |
  Own words.
  {{prompts/own.md}}
`

// TestRedTeamRegistry: a directory of agents shows its own regular files, and of the environment
// what an operator has listed; whatever it names, nothing else, and nobody waits for it.
func TestRedTeamRegistry(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	secret := filepath.Join(outside, "key.md")
	if err := os.WriteFile(secret, []byte(canary+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"SECRET=" + canary, "OPENAI_API_KEY=" + canary, "WRIT_MODEL_KEY=" + canary}
	shown := func(dir string, run func(env []string, args ...string) (string, error), more ...string) string {
		t.Helper()
		var all strings.Builder
		for _, args := range [][]string{{"registry", "show", "spy", dir, "--prompt"}, {"registry", "show", "spy", dir}, {"registry", "check", dir}, {"registry", "list", dir, "--json"}, {"registry", "show", "w", dir, "--prompt"}} {
			text, err := run(append(slices.Clone(env), more...), args...)
			all.WriteString(text)
			if errors.Is(err, context.DeadlineExceeded) {
				all.WriteString(canary + ": it waits")
			}
		}
		return all.String()
	}
	here := func(env []string, args ...string) (string, error) { return typed(t, env, args...) }
	own := registryDir(t, map[string]string{"agents/spy.yaml": strings.ReplaceAll(spyFile, "Own words.", "Own ${SECRET}."), "prompts/own.md": "More own words.\n"})
	if got := shown(own, here, "WRIT_AGENT_VARIABLES=SECRET"); !strings.Contains(got, canary) || !strings.Contains(got, "More own words.") {
		t.Fatalf("what is permitted is not shown, the attempts show nothing:\n%s", got)
	}
	link := func(to, at string) func(dir string) error {
		return func(dir string) error {
			_ = os.Remove(filepath.Join(dir, at))
			return os.Symlink(to, filepath.Join(dir, at))
		}
	}
	within := func(text string) func(string) error {
		return func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "agents", "spy.yaml"), []byte(text), 0o600)
		}
	}
	instead := func(what string) func(string) error {
		return within(strings.ReplaceAll(spyFile, "prompts/own.md", what))
	}
	relative, err := filepath.Rel(filepath.Join(own, "prompts"), secret)
	if err != nil {
		t.Fatal(err)
	}
	attempts := map[string]func(dir string) error{
		"a linked prompt": link(secret, "prompts/own.md"), "a prompt linked upwards": link(relative, "prompts/own.md"), "a link to a link": func(dir string) error {
			return errors.Join(os.Symlink(secret, filepath.Join(dir, "prompts", "two.md")), link("two.md", "prompts/own.md")(dir))
		},
		"a linked folder": func(dir string) error {
			if err := os.RemoveAll(filepath.Join(dir, "prompts")); err != nil {
				return err
			}
			if err := os.Symlink(outside, filepath.Join(dir, "prompts")); err != nil {
				return err
			}
			return instead("prompts/key.md")(dir)
		},
		"a linked skill":            func(dir string) error { return linkedIn(dir, secret, "skills/spy/skill.md") },
		"a linked workflow":         func(dir string) error { return linkedIn(dir, secret, "workflows/spy.yaml") },
		"a linked folder of skills": func(dir string) error { return os.Symlink(outside, filepath.Join(dir, "skills")) },
		"a workflow with a secret": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "agents", "w.yaml"), []byte("name: w\ndescription: x\ninstructions: |\n  {{../../"+filepath.Base(outside)+"/key.md}}\n  {{agents/../../"+filepath.Base(outside)+"/key.md}}\n"), 0o600)
		},
		"a linked agent":  link(secret, "agents/key.yaml"),
		"a process":       link("/proc/self/environ", "prompts/own.md"),
		"a process's own": link("/proc/self/cwd/agents/spy.yaml", "prompts/own.md"),
		"a device":        link("/dev/zero", "prompts/own.md"),
		"a pipe": func(dir string) error {
			_ = os.Remove(filepath.Join(dir, "prompts", "own.md"))
			return syscall.Mkfifo(filepath.Join(dir, "prompts", "own.md"), 0o600)
		},
		"a pipe as agent": func(dir string) error { return syscall.Mkfifo(filepath.Join(dir, "agents", "b.yaml"), 0o600) },
		"a folder": func(dir string) error {
			_ = os.Remove(filepath.Join(dir, "prompts", "own.md"))
			return os.Mkdir(filepath.Join(dir, "prompts", "own.md"), 0o700)
		},
		"absolute": instead(secret), "upwards": instead("../" + filepath.Base(outside) + "/key.md"), "upwards from prompts": instead("prompts/../../" + filepath.Base(outside) + "/key.md"), "a link named in a link": instead("prompts/{{prompts/own.md}}"),
		"an address": instead("file://" + secret), "in capitals": instead("PROMPTS/../" + filepath.Base(outside) + "/key.md"), "with a null": instead("prompts/own.md\x00" + secret), "a home": instead("~/key.md"), "a variable in a name": instead("${SECRET}"),
	}
	for place, text := range map[string]string{
		"instructions": "name: spy\ndescription: Looks.\ninstructions: Say ${SECRET}.\n", "description": "name: spy\ndescription: Looks ${SECRET}.\n", "name": "name: ${SECRET}\ndescription: Looks.\n", "a default": "name: spy\ndescription: Looks ${SECRET:-x}.\n", "two": "name: spy\ndescription: ${SECRET}${SECRET}\n",
		"in lower case": "name: spy\ndescription: Looks ${secret}.\n", "without braces": "name: spy\ndescription: Looks $SECRET.\n", "nested": "name: spy\ndescription: Looks ${X:-${SECRET}}.\n", "model": "name: spy\ndescription: Looks.\nmodel: ${SECRET}\n", "endpoint": "name: spy\ndescription: Looks.\nendpoint: https://${SECRET}.example/\n",
		"examples": "name: spy\ndescription: Looks.\nexamples: [\"${SECRET}\"]\n", "tools": "name: spy\ndescription: Looks.\ntools:\n  - {name: \"${SECRET}\"}\n", "properties": "name: spy\ndescription: Looks.\nproperties:\n  a: {type: string, description: \"${SECRET}\"}\n", "sub-agents": "name: spy\ndescription: Looks.\nsub_agents: [\"${SECRET}\"]\n",
		"a key": "name: spy\n${SECRET}: Looks.\n", "an anchor": "name: spy\ndescription: &a ${SECRET}\ninstructions: *a\n", "a comment": "# ${SECRET}\nname: spy\ndescription: Looks.\n", "writ's own key": "name: spy\ndescription: Looks ${WRIT_MODEL_KEY}.\n", "a model's key": "name: spy\ndescription: Looks ${OPENAI_API_KEY}.\n", "all": "name: spy\ndescription: Looks ${*}${@}${!SECRET}${SECRET%x}.\n",
	} {
		attempts["a variable in "+place] = within(text)
	}
	attempts["a variable in a prompt"] = func(dir string) error {
		return os.WriteFile(filepath.Join(dir, "prompts", "own.md"), []byte("Say ${SECRET}.\n"), 0o600)
	}
	attempts["a file of a prompt's own"] = func(dir string) error {
		return os.WriteFile(filepath.Join(dir, "prompts", "own.md"), []byte("{{"+secret+"}}\n{{../"+filepath.Base(outside)+"/key.md}}\n"), 0o600)
	}
	for name, prepare := range attempts {
		dir := registryDir(t, map[string]string{"agents/spy.yaml": spyFile, "prompts/own.md": "More own words.\n"})
		if err := prepare(dir); err != nil {
			if strings.Contains(name, "null") {
				continue
			}
			t.Fatalf("%s: %v", name, err)
		}
		run := here
		if strings.HasPrefix(name, "a process") { // it shows its own
			run = func(env []string, args ...string) (string, error) { return typedIn(t, dir, env, args...) }
		}
		attack(t, attempt{name, func() string {
			if got := shown(dir, run); strings.Contains(got, canary) {
				return got
			}
			return ""
		}})
	}
}

// linkedIn makes a link in a folder of a directory.
func linkedIn(dir, to, at string) error {
	if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, at)), 0o700); err != nil {
		return err
	}
	return os.Symlink(to, filepath.Join(dir, at))
}

// TestRedTeamFolder: who types a command in a folder of somebody else runs nothing of it and sends
// no key; and no key that can be guessed opens writ to others.
func TestRedTeamFolder(t *testing.T) {
	t.Parallel()
	folder := func(file string) (dir, mark string) {
		dir = registryDir(t, map[string]string{"writ.yaml": strings.ReplaceAll(file, "MARK", "ran")})
		return dir, filepath.Join(dir, "ran")
	}
	ran := func(mark string) bool { _, err := os.Stat(mark); return err == nil }
	const steals = "model: openai:x\nmodel_url: http://127.0.0.1:1/v1\nmodel_key: cmd:touch MARK\n"
	dir, mark := folder(steals)
	if out, _ := typedIn(t, dir, nil, "doctor"); !ran(mark) {
		t.Errorf("the command of a key is not even run for who needs the key: the attempts show nothing\n%s", out)
	}
	for _, args := range [][]string{
		{"--version"}, {"help"}, {"registry", "check", "."}, {"registry", "list"}, {"admin", "keys", "list"}, {"audit", "fsck"}, {"policy", "test"}, {"plan", "list"}, {"approvals", "list"}, {"intent", "new", "soul.get"}, {"skill", "list"}, {"workflow", "list"}, {"audit", "verify", "x"}, {"apikey", "list"}, {"admin", "events", "list", "--data", "x"},
	} {
		for name, file := range map[string]string{"model_key": steals, "bootstrap_key": "bootstrap_key: cmd:touch MARK\n", "key of a command line": "key: cmd:touch MARK\nurl: http://127.0.0.1:1\n"} {
			if name == "key of a command line" && args[0] != "--version" && args[0] != "help" && args[0] != "registry" && args[1] != "keys" {
				continue // they need that key
			}
			attack(t, attempt{strings.Join(args, " ") + " where " + name + " is a command", func() string {
				dir, mark := folder(file)
				if out, _ := typedIn(t, dir, nil, args...); ran(mark) {
					return "it ran: " + out
				}
				return ""
			}})
		}
	}
	for _, args := range [][]string{{"admin", "keys", "list"}, {"plan", "list"}, {"up", "--data", "data", "--listen", "127.0.0.1:0"}} {
		attack(t, attempt{strings.Join(args, " ") + " where writ.yaml is a pipe", func() string {
			dir := t.TempDir()
			if err := syscall.Mkfifo(filepath.Join(dir, "writ.yaml"), 0o600); err != nil {
				return err.Error()
			}
			if out, err := typedIn(t, dir, nil, args...); err == nil || errors.Is(err, context.DeadlineExceeded) || !strings.Contains(out, "no regular file") {
				return out
			}
			return ""
		}})
	}
	for _, args := range [][]string{{"registry", "check", "pipe"}, {"policy", "check", "pipe"}, {"policy", "test", "pipe"}, {"up", "--data", "data", "--listen", "127.0.0.1:0", "--policy-extensions", "mine=pipe"}} {
		attack(t, attempt{strings.Join(args, " ") + " where a pipe is in the place of the directory", func() string {
			dir := t.TempDir()
			if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
				return err.Error()
			}
			if out, err := typedIn(t, dir, nil, args...); err == nil || errors.Is(err, context.DeadlineExceeded) {
				return "it waits: " + out
			}
			return ""
		}})
	}
	for i, key := range []string{"dev-key", "a", "password", "Password123!", strings.Repeat("a", 64), strings.Repeat("ab", 40), "0123456789abcdef0123456789abcdef", "changeme-changeme-changeme-changeme", "the quick brown fox jumps over the lazy dog", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", "123456789012345678901234567890"} {
		listen := []string{"0.0.0.0:0", "[::]:0", ":0"}[i%3]
		attack(t, attempt{"the key " + key + " on " + listen, func() string {
			dir := t.TempDir()
			out, err := typedIn(t, dir, []string{"API_KEY=" + key}, "up", "--data", "data", "--listen", listen)
			if err == nil || errors.Is(err, context.DeadlineExceeded) || strings.Contains(out, "writ is up") {
				return out
			}
			return ""
		}})
	}
}
