package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"aob.dev/writ/intents"
)

// TestMain makes this test binary the writ of the scripts: they run the real
// command line in processes of their own.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"writ": main, "p8": main, "notes-server": notesServer, "curl": curl, "jq": jq, "uuidgen": uuidgen})
}

// TestScripts runs testdata/script. Beside the usual commands they have those
// of this folder's tests:
//
//	capture NAME REGEXP        a variable gets the first group's match in the last output
//	exits N PROGRAM ARGS…      the program ends with exactly this exit code
//	skills KIND                a skill server, at $SKILLS
//	provider                   a server of models, at $PROVIDER
//	up ARGS…                   writ up on $WORK/data and a free port, at $URL, in the background
//	down, die                  end it: told to, or with kill -9
//	interrupted                end it with Ctrl-C, and when it says that it is ending with another one
//	begun model|skill          waits until the slow model is asked, or a skill is called
//	get PATH, save FILE PATH   HTTP, with the API key of $WORK/data
//	anyone PATH                the same without a key
//	linked, forge NAME         addresses of artifacts: of the last answer, and our own
//	sign, step, spoil, large   intents signed with the keys of $WORK/data
//	accepted, refused          what the router says to them
//	acme, outside SEED CMD…    a service of somebody else: built, and run
//	judged CMD…                sends it the ticket vectors, prints what it answers wrongly
//	gone                       kills them
//	port                       a free port, at $PORT
//	admitted, barred SEED      whether a NATS seed connects to $PORT, in the end
//	submit FILE [NAME VALUE]…  submits with headers, prints as get does
//	followed KEY ADDRESS       prints the lines of a log until it ends
//	replace FROM TO OLD NEW…   writes a file with texts replaced
//	resubmit ROLE TYPE ARGS…   sign and submit until the executor is there
//	rotate, revoke ROLE…       new keys with writ admin keys, and the end of the first ones
//	signed ROLE…               who signed the last intent
//	example PAGE TEXT          runs the lines of a page that hold the text
//	follow PAGE                does what a page says, block by block
//	helped COMMAND…            runs the commands that its help shows
//	configured PAGE TEXT       writ.yaml from the lines of a page that hold the text
//	notes-server --dir DIR     a skill server over its standard streams, a program
//	unseen TEXT                no file of $WORK/data holds the text
//	verify                     checks the journal of $WORK/data and prints its intents
//
// and those that docs/sources/README.md names.
func TestScripts(t *testing.T) { testscript.Run(t, scripts("testdata/script")) }

// scripts are those of a folder, with our commands.
func scripts(dir string) testscript.Params {
	return testscript.Params{
		Dir:                 dir,
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			plan := intents.TimedID(intents.KindPlan, time.Now(), "")
			e.Setenv("P", plan) // prefix of the ids of the script's plans
			e.Setenv("ELEVEN", planOf(plan+"long", 11))
			// Later than whatever the script signs, and within its ttl.
			e.Setenv("NOW", time.Now().Add(time.Minute).UTC().Format(time.RFC3339))
			rules, err := filepath.Abs("../../policies/writ")
			if err != nil {
				return err
			}
			e.Setenv("POLICIES", rules)
			e.Setenv("GOGC", os.Getenv("GOGC")) // what starts collects as this process does
			w := &world{vars: e.Vars, dir: e.WorkDir, data: e.WorkDir + "/data"}
			e.Values[worldKey{}] = w
			e.Defer(audited(e, w.data)) // last: what runs has ended
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": positive(exits), "skills": positive(serveSkills), "provider": positive(provider), "calls": positive(calls),
			"up": positive(up), "down": positive(down), "die": positive(die), "interrupted": positive(interrupted), "begun": positive(begun), "occupy": positive(occupy),
			"get": positive(get), "upload": positive(upload), "submit": positive(submit), "followed": positive(followed), "replace": positive(replace), "save": positive(save), "catalog": positive(checkCatalog), "jwks": positive(checkJWKS),
			"sign": positive(sign), "step": positive(openStep), "spoil": positive(spoil), "large": positive(large), "accepted": positive(accepted), "refused": positive(refused),
			"anyone": positive(anyone), "linked": positive(linked), "forge": positive(forge),
			"acme": positive(acme), "port": positive(port), "outside": positive(outside), "judged": positive(judged), "gone": positive(killServices), "admitted": positive(admitted), "barred": positive(barred), "resubmit": positive(resubmit),
			"example": positive(example), "follow": positive(follow), "helped": positive(helped), "configured": positive(configured), "unseen": positive(checkAbsent),
			"rotate": positive(rotate), "revoke": positive(revoke), "signed": positive(signed),
			"capture": positive(capture), "verify": positive(verifyJournal), "demo": positive(checkDemo), "verdict": positive(checkVerdict),
			"fill": positive(fill), "ended": positive(endScene), "eventually": positive(eventually), "tools": positive(serveTools),
			"declared": positive(declared), "collector": positive(collectSpans), "defined": positive(defined), "hangup": positive(hangup), "agent": positive(serveAgent), "choosing": positive(choosing),
			"acting": positive(acting), "enricher": positive(enricher), "collecting": positive(collecting), "staff": positive(staff), "brand": positive(brand), "search": positive(search), "ask": positive(ask), "ends": positive(ends),
		},
	}
}

// world is the running environment of one script.
type world struct {
	vars         []string // environment of a script's commands
	dir, data    string
	args         []string // of the last up
	up           *process
	url          string
	calls        func() int64  // of the skill server
	called       chan struct{} // closed at the first one
	calledCities chan struct{} // closed when the model that never answers is asked for cities
	task         *task         // that step opened
	services     []func()      // end each service of somebody else
}

type worldKey struct{}

func worldOf(ts *testscript.TestScript) *world {
	w, ok := ts.Value(worldKey{}).(*world)
	if !ok {
		ts.Fatalf("the script has no world")
	}
	return w
}

// positive is a command that "!" makes no sense for.
func positive(fn func(ts *testscript.TestScript, w *world, args []string)) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg {
			ts.Fatalf("this command is not to be negated")
		}
		fn(ts, worldOf(ts), args)
	}
}

// want checks the number of a command's arguments.
func want(ts *testscript.TestScript, args []string, n int, usage string) {
	if len(args) < n {
		ts.Fatalf("usage: %s", usage)
	}
}

// patience bounds waiting for something to end by itself.
const patience = time.Minute

func exits(ts *testscript.TestScript, w *world, args []string) {
	want(ts, args, 2, "exits CODE PROGRAM ARGS…")
	code, err := strconv.Atoi(args[0])
	ts.Check(err)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[1], args[2:]...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = ts.MkAbs("."), environ(ts, w), ts.Stdout(), ts.Stderr()
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		ts.Fatalf("it did not end within %s", patience)
	case err != nil && !errors.As(err, &exit):
		ts.Fatalf("%v", err)
	case cmd.ProcessState.ExitCode() != code:
		ts.Fatalf("exit code %d, not %d", cmd.ProcessState.ExitCode(), code)
	}
}

// environ is the script's environment with what scripts set.
func environ(ts *testscript.TestScript, w *world) []string {
	env := append([]string{}, w.vars...)
	for _, name := range []string{
		"NO_COLOR", "WRIT_API_KEY", "WRIT_DATA", "WRIT_LISTEN", "WRIT_SKILLS", "WRIT_URL", "XDG_CONFIG_HOME", "WRIT_MODEL_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL", "ACME_LAX", "ACME_DIES", "CRM_TOKEN", "P8_SCHEMA_DIR",
		"WRIT_ENVIRONMENT", "NODE_ENV", "API_KEY", "API_KEY_SECRET_NAME", "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_REGION", "VERTEX_AI_LOCATION", "VERTEX_AI_MODEL",
		"WRIT_AGENT_HOSTS", "WRIT_AGENT_VARIABLES", "MY_AGENT_ENDPOINT", "FIRESTORE_DATABASE", "SLACK_BOT_TOKEN", "OTEL_EXPORTER_OTLP_ENDPOINT", "LOG_LEVEL", "SESSION_TTL_MINUTES", "SESSION_MAX_TURNS", "ENABLE_SESSION_BYPASS", "ENABLE_CLARIFICATION",
		"ENABLE_CIRCUIT_BREAKER", "ENABLE_RATE_LIMITING", "RATE_LIMIT_WINDOW_MS", "RATE_LIMIT_MAX_REQUESTS", "CIRCUIT_BREAKER_FAILURE_THRESHOLD", "CIRCUIT_BREAKER_RESET_TIMEOUT_MS",
		"CIRCUIT_BREAKER_HALF_OPEN_MAX_CALLS", "CIRCUIT_BREAKER_HALF_OPEN_TIMEOUT_MS", "CB_SYNC_INTERVAL_MS", "CB_LEADER_LEASE_MS", "AGENT_REGISTRY_DIR", "MCP_REQUEST_TIMEOUT_MS", "MCP_MAX_RETRIES",
		"P8_OTEL_ENABLED", "P8_OTEL_SERVICE_NAME", "P8_OTEL_COLLECTOR_ENDPOINT",
		"WRIT_MODEL", "SKILL_SERVICE_URL",
	} {
		if v := ts.Getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// codeNamed is a code of the closed set.
func codeNamed(ts *testscript.TestScript, name string) intents.Code {
	c := intents.Code(name)
	if c.Info().Code != c {
		ts.Fatalf("no such code: %s", name)
	}
	return c
}

func must[T any](ts *testscript.TestScript) func(v T, err error) T {
	return func(v T, err error) T {
		ts.Check(err)
		return v
	}
}
