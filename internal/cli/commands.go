package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/demo"
)

// row is one command of the command line, or a group of them.
type row struct {
	use, short string
	args       cobra.PositionalArgs // nil: those that use names
	make       func(*command)       // declares the flags, and says what the command does
	group      []row
	complete   func(IO) cobra.CompletionFunc // of the first argument
	long       string
}

// named are the arguments that a usage line names, before any flag; those in brackets may
// be missing.
func named(use string) cobra.PositionalArgs {
	least, most := 0, 0
	for _, word := range strings.Fields(use)[1:] {
		if strings.Contains(word, "--") {
			break
		}
		if most++; word[0] != '[' {
			least++
		}
	}
	switch {
	case most == 0:
		return cobra.NoArgs
	case least == 0:
		return cobra.MaximumNArgs(most)
	case least < most:
		return cobra.RangeArgs(least, most)
	}
	return cobra.ExactArgs(most)
}

// commands are all of them. Help sorts them by name.
func commands() []row {
	return []row{
		{use: "up", short: "Run everything in one process", make: upCommand, long: `
Run everything in one process: embedded NATS, SQLite, sandbox, agents and HTTP.
The data is in --data. The first start makes the keys, the log and an API key.
To try it: writ up --sample, then in another terminal:
writ run "` + demo.Question + `"`},
		{use: "demo", short: "Show the whole system on real data, then verify all of it", make: demoCommand, long: `
Start an embedded writ and a skill server with a week of real earthquakes (USGS).
Ask a question through the public API. Print the answer, the plan and every sealed
order. Export the record as a bundle, verify it offline and decide it again.`},
		{use: "init NAME --skills URL|COMMAND", short: "Write a new directory with an agent and its skill servers", make: initCommand, long: `
Write the directory NAME: writ.yaml with the skill servers and the model, agents/NAME.yaml
and a README. Nothing is overwritten. Then: cd NAME && writ up`},
		{use: "run QUESTION", short: "Ask a running writ to do a task", make: runCommand},
		{use: "query MODE QUERY", short: "Look up a memory, search memories, or run a named query", make: queryCommand, long: `
Look up a memory, search memories, or run a named query, as the user of your API key:

  LOOKUP KEY     the memory of a key
  SEARCH TEXT    memories, best first; also FUZZY
  SQL usage      what agents used of models: turns, tokens, latency, cost
  SQL messages   your messages of all sessions, newest first
  SQL schemas    the agents`},
		{use: "chat", short: "Talk with a running writ", make: chatCommand, long: `
Talk with a running writ, one line a message, in one session. The answer is shown while
it comes, its data as a table. You are asked about orders that wait and that you may
approve. Ctrl-D ends the talk. Ctrl-C leaves: the plan goes on, and you are told how to
come back to it.`},
		{use: "eval DIR", short: "Ask a running writ the cases of a directory, and judge what it does", make: evalCommand, long: `
Ask each case of DIR/*.yaml in a session of its own. Judge the tools that the record says
were called, the agents, and the answer (docs/eval.md). Exit 1 if the cases of a set, or
of a pair of agents, pass less often than --min. The tools are really called.`},
		{use: "doctor", short: "Find what would keep writ up from running", make: doctorCommand, long: `
Check the configuration, data directory, keys, clock, sandbox, skill servers, policy
and models, and prove that a forbidden order is refused. Takes the flags of writ up.
Exits 1 if something is wrong.`},
		{use: "confirm CONDITION", short: "Confirm that you checked what stops writ from accepting orders", make: confirmCommand, long: `
Confirm that you checked a condition that stops a writ from accepting orders. See
/readyz or writ doctor for the condition. writ accepts orders again after this:

  clock    the clock was set by more than a minute while writ ran, and is right now
  ledger   leaves that were promised are missing, and the journal is sound
  witness  a witness has seen another log, and you choose to go on with this one`},
		{use: "version", short: "Print the version", make: versionCommand},
		{
			use: "bench NAME", short: "Measure writ against a baseline",
			make: benchCommand, args: cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs), long: `
Measure one thing and its baseline in turns within one run, and print the ratio:
  decide  CPU of a decision, against one bare ed25519.Verify
  orders  durable orders a second, against bare fsync and JetStream sync-always`,
		},
		{use: "intent", short: "Write, check, sign, show, verify and submit orders", group: intentRows},
		{use: "plan", short: "List, show, follow and cancel plans", group: planRows},
		{use: "receipt", short: "Get and verify receipts", group: receiptRows},
		{use: "approvals", short: "List held orders, approve and reject them", group: approvalRows},
		{use: "audit", short: "Export, verify, replay and prove the record", group: auditRows, long: `
Read the record of a data directory (export, show, prove, tail, trust). Or check a
bundle that was exported from one, without any other source (verify, replay).`},
		{use: "registry", short: "Check, list, show, compare and push agents", group: registryRows, long: `
Work on a registry of agents: a directory with agents/*.yaml, prompts/*.md and
skills/<id>/skill.md (docs/agents.md). No writ need run. ${VAR} in a file is filled in
from the environment.`},
		{use: "policy", short: "Check, test, explain, sign and try out policies", group: policyRows, long: `
Work on a policy tree: a directory or a bundle (*.tar.gz). Without one, the command
takes the embedded default. ` + "`backtest`" + ` tries a new tree on the recorded decisions.`},
		{use: "keys", short: "Make, list, rotate and revoke keys", group: keyRows, long: `
Change which keys are in force. Each change is a new version of the key set. The root
key signs it, and an operator's order puts it in force (docs/keys.md).`},
		{use: "tenant", short: "Create and list tenants, and set their data", group: tenantRows},
		{use: "role", short: "Set and list roles", group: roleRows},
		{use: "user", short: "Set and list users", group: userRows},
		{use: "apikey", short: "Make, list and revoke API keys", group: apikeyRows},
		{use: "skill", short: "Approve, compare and list skills", group: skillRows},
		{use: "grant", short: "Revoke grants", group: grantRows},
		{use: "order", short: "Resolve indeterminate orders, and erase parts of orders", group: orderRows},
		{use: "executor", short: "Manage external executors, which carry out their own intent types", group: executorRows},
		{use: "context", short: "Name the writs that you use, and choose one", group: contextRows, long: `
Name the writs that you use, and choose one. A context has a URL, or a data directory
on this machine, and a file with the API key. Flags, --context and the environment
(WRIT_URL, WRIT_DATA, WRIT_API_KEY, WRIT_CONTEXT) override the chosen context.`},
		{use: "sandbox", short: "Try the sandbox", group: sandboxRows},
		{use: "backup DIR|FILE.tar", short: "Copy a data directory, even while writ runs on it", make: backupCommand, long: `
Copy ledger, journal, documents and blobs, in that order: no copy is then older than
one that depends on it. Journal and documents are copied at one moment. writ may run
on the directory meanwhile. Private keys are copied only with --keys.`},
		{
			use: "restore DIR|FILE.tar --data DIR", short: "Make a data directory from a backup, and check all of it",
			make: restoreCommand, long: `
Make a data directory from a backup. Every file must have the digest that the backup
names. If there are keys, everything is checked as ` + "`writ audit fsck`" + ` does. The data
directory must be missing or empty. It appears only when every check has passed.`,
		},
		{use: "storage", short: "Maintain the stores: sizes, versions, projections, copies", group: storageRows},
	}
}

var intentRows = []row{
	{use: "new TYPE", short: "Print an order of a type to fill in", make: intentNew, complete: intentTypes, long: `
Print an unsigned order of a type. The arguments come from --args, or are made from the
type's schema. The rest comes from the flags. If the type needs a grant and there is an
API key, the command gets a grant: actor, session, turn and audience are then the
grant's. Pipe it:
  writ intent new plan.list | writ intent sign --key .writ/keys/gateway.pem | writ intent submit`},
	{use: "lint [FILE|-]", short: "List everything that is wrong with an order, and how to fix it", make: intentLint, long: `
Check an order, sealed or not, as far as possible without a router: form, numbers,
envelope, type, arguments, ttl_sec and capabilities. Exit 0: nothing is wrong.
An unsealed order need not have what ` + "`writ intent sign`" + ` fills in.`},
	{use: "sign [FILE|-] --key FILE", short: "Seal an order with a key", make: intentSign, long: `
Seal an order and print it, ready to be submitted. issued_at becomes the time of
signing. A missing idempotency_key becomes the order's fingerprint, or a random one for
reads and operators' orders. A missing audience is asked of --url.`},
	{use: "show [FILE|-]", short: "Show the parts of an order; nothing is verified", make: intentShow},
	{use: "verify [FILE|-] --keys JWKS", short: "Check form, signature and grant of an order, offline", make: intentVerify},
	{use: "submit [FILE|-]", short: "Send a sealed order to a router", make: intentSubmit},
}

var planRows = []row{
	{use: "list", short: "List your plans, newest first", make: planList},
	{use: "show PLAN_ID", short: "Show a plan, its steps and how it ended", make: planShow, complete: planIDs},
	{use: "watch PLAN_ID", short: "Follow a plan to its answer", make: planWatch, complete: planIDs, long: `
Follow a plan to its answer. Events of the last ten minutes are shown first. Output and
exit codes are those of writ run. Leaving does not end the plan.`},
	{use: "cancel PLAN_ID", short: "End a plan without its answer", make: planCancel, complete: planIDs},
}

var receiptRows = []row{
	{use: "get INTENT_ID", short: "Get the receipt of an accepted order", make: receiptGet},
	{use: "verify [FILE|-] --keys JWKS", short: "Check a receipt, offline", make: receiptVerify, long: `
Check offline that the router of a log signed a receipt. The input is a file or standard
input: the receipt alone, or a JSON document with a member receipt, such as the answer
to an order. The keys are what /.well-known/jwks.json serves; get them in a way that you
trust. To see that the record is in the log, use ` + "`writ audit prove`" + `.`},
}

var approvalRows = []row{
	{use: "list", short: "List held orders: your own, and those that you may decide", make: approvalsList},
	{use: "show INTENT_ID", short: "Show a held order", make: approvalsShow, complete: heldOrders},
	decision(catalog.DecisionApprove, "approve INTENT_ID", "Approve a held order"),
	decision(catalog.DecisionReject, "reject INTENT_ID --reason TEXT", "Reject a held order"),
	decision(catalog.DecisionRequestChanges, "request-changes INTENT_ID --reason TEXT", "Reject a held order and say what should change"),
}

func decision(kind, use, short string) row {
	return row{use: use, short: short, make: approvalsDecide(kind), complete: heldOrders, long: "\n" + short + `. You act as the user of your API key. With --operator-key
you act as the person of that operator key, which signs on this machine.`}
}

var auditRows = []row{
	{use: "export --out FILE", short: "Write a bundle that can be verified without any other source", make: auditExport},
	{
		use: "verify BUNDLE", short: "Check a bundle offline: every signature, key, grant, task, receipt and Merkle proof",
		make: auditVerify(false),
	},
	{
		use: "replay [BUNDLE]", short: "Verify a bundle and decide every order in it again; nothing is carried out",
		make: auditVerify(true),
	},
	{use: "show INTENT_ID", short: "Show the records of an order", make: auditShow},
	{use: "search [TEXT …]", short: "Find records by filters and words", make: auditSearch, args: cobra.ArbitraryArgs, long: `
Print the records that match every filter and every word, in order. Words are searched
in all parts of a record. Upper and lower case are the same.`},
	{use: "fsck", short: "Check a data directory: journal, ledger, blobs and documents", make: auditFsck, long: `
Read the whole data directory and name the first thing that is wrong: positions, records
and their digests, the ledger's leaves, tiles and checkpoint, and blobs that records
name. If no process uses the directory, also compare the documents with the journal.
Nothing is written.`},
	{use: "prove INTENT_ID", short: "Print the receipt, inclusion proofs and keys of one order as one JSON document", make: auditProve},
	{use: "tail", short: "Print the records, one per line", make: auditTail},
	{use: "trust", short: "Print the trust file of a log, which auditors get separately from the bundles", make: auditTrust},
}

var policyRows = []row{
	{use: "check [DIR|BUNDLE]", short: "Compile strictly, and list what the policy reads", make: policyCheck, long: `
Compile strictly, and list what the policy reads. A tree without package writ.authz is an
extension: it is compiled on top of the embedded tree, and its own rules are listed.`},
	{use: "test [DIR|BUNDLE]", short: "Run Rego tests and decision tables; a tree without tests fails", make: policyTest},
	{use: "coverage [DIR|BUNDLE]", short: "List the lines of the rules that no test and no table reaches", make: policyCoverage},
	{use: "fmt DIR", short: "Format Rego as opa fmt does; without -w, exit 1 if a file is not formatted", make: policyFmt},
	{use: "explain INTENT_ID", short: "Show which rules decided a recorded order, and their input", make: policyExplain},
	{
		use: "backtest --policy NEW", short: "Decide the recorded orders under a new policy; exit 1 if a decision changes",
		make: policyBacktest, long: `
Decide every recorded order under today's policy and under a new one, with the roles,
plans, tasks and directory of that time. Nothing is carried out. For a bundle, today's
policy is the one that decided each record, unless --today names one.`,
	},
	{use: "bundle", short: "Build, sign and verify OPA bundles", group: []row{
		{
			use: "build DIR --revision N --out FILE", short: "Make a bundle from a tree that compiles; with --key, a signed one",
			make: bundleBuild,
		},
		{use: "sign BUNDLE --key KEY", short: "Sign a bundle, and replace any signature that it has", make: bundleSign},
		{use: "verify BUNDLE --key PUBLIC", short: "Check that a bundle is whole, is signed by a key, and compiles", make: bundleVerify},
	}},
	{
		use: "push DIR|BUNDLE --revision N", short: "Put a tree in force by an operator's order; it is proved before it replaces the old one",
		make: policyPush,
	},
}

var registryRows = []row{
	{use: "check DIR", short: "Find what is wrong with the agents of a directory; exit 1 if anything is", make: registryCheck, long: `
Read a directory of agents and print each fault with its file, line and JSON Pointer, and
what to do. Files that would be left out are named on standard error.`},
	{use: "list [DIR]", short: "List the built-in agents, and those of a directory", make: registryList, long: `
List the built-in agents, and those of a directory: name, file, mode, tools, sub-agents
and description. The mode says what the agent answers with: conversational, a text;
structured, an object; orders, a plan or a step's result; remote, what its own server
answers.`},
	{use: "show NAME [DIR]", short: "Show an agent: its definition, what it may do, and its system prompt", make: registryShow, long: `
Show an agent of a directory, or a built-in one: what it may do, its file, and the system
prompt that the model gets. At run time the persona of the tenant or user follows the
instructions.`},
	{use: "push DIR", short: "Put the agents of a directory in force for a tenant, by an operator's order", make: registryPush, long: `
Check the agents of a directory and put them in force as the next revision. Plans that are
open go on with the revision that they began with. --tenant system is every tenant's.
With --eval they are put in force for the tenant --trial first, and asked the cases of
DIR/*.yaml there (docs/eval.md): agents that pass fewer than --min are refused, exit 1.`},
	{use: "revert", short: "Put the revision before the one in force in force again", make: registryRevert},
	{use: "diff DIR DIR", short: "Compare two registries: first what the agents may do, then their files; exit 1 if they differ", make: registryDiff},
}

var keyRows = []row{
	{use: "init", short: "Make the keys of a new data directory, offline", make: keysInit, long: `
Make the keys of a data directory before its first start, each in a file of mode 0600.
Print the origin that the log will have. Nothing is overwritten.`},
	{use: "list", short: "List the keys in force and the revoked keys", make: keysList, long: `
List the keys in force and the revoked keys, from the record of the data directory. If
you name a writ by its URL, list the keys that it publishes.`},
	{use: "rotate ROLE", short: "Give a role a new key; the old one is accepted for a while", make: keysRotate, long: `
Make a new key for a role (gateway, manager, planner, workflow, operator, router, ledger)
in the data directory and put it in force. A running writ signs with it from then on,
without a restart. What the old key signed stays valid. The old key itself is accepted
until --overlap is over.`},
	{use: "add --subject USER --tenant T (--out FILE|--jwk FILE)", short: "Put another operator's key in force", make: keysAdd, long: `
Put the key of another operator of a tenant in force. With --out, the key is made here.
With --jwk, the operator keeps the private key, for example on a hardware key, and gives
you the public one. The user row says what the operator may do (writ user put).`},
	{use: "revoke KID", short: "Refuse a key from now on", make: keysRevoke, long: `
Revoke a key: every later order, grant and ticket of it is refused with KEY_REVOKED. What
it signed before keeps its verdict. KID may be its first six or more characters. Put a KID
that begins with - last, after --. The last key of a role cannot be revoked: rotate first.`},
	{use: "put [FILE|-]", short: "Put a signed key set in force", make: keysPut},
	{use: "export", short: "Print the public keys as JWKS, or the trust file for auditors", make: keysExport, long: `
Print the keys in force as a JWKS (RFC 7517), for ` + "`writ intent verify --keys`" + ` and for
services that check tickets. With --trust: print the root key and origin of the log in
the data directory. Auditors pin them, and must not get them together with a bundle.`},
	{use: "root", short: "Show the root key, take it offline, sign a key set with it", group: []row{
		{use: "show", short: "Print the thumbprint of the root key, and whether its file is here", make: rootShow},
		{use: "move FILE", short: "Move the root key out of the data directory", make: rootMove, long: `
Copy the root key to FILE, on a medium that goes offline. Read the copy back, then remove
the key from the data directory. A running writ does not need it.`},
		{use: "sign FILE", short: "Sign a prepared key set, offline", make: rootSign, long: `
Sign what ` + "`--prepare FILE`" + ` wrote on another machine. The changes are printed first: read
them. The previous version must be signed by this root key. Put the result in force with
` + "`writ keys put`" + `.`},
	}},
}

var tenantRows = []row{
	{use: "add ID", short: "Create a tenant with the default roles; only operators of system may", make: tenantAdd},
	{use: "data KEY JSON", short: "Set data of a tenant that policies read, such as approval or skills_allow", make: tenantData},
	listing("List tenants with all rows that operators put", tenantList),
}

var roleRows = []row{
	{use: "put NAME --capability AREA:VERB …", short: "Set the capabilities of a role; without any, it has none", make: rolePut},
	listing("List roles", roleList),
}

var userRows = []row{
	{use: "put ID --role ROLE …", short: "Set the roles of a user; they limit the roles of every API key", make: userPut},
	listing("List users", userList),
}

var apikeyRows = []row{
	{use: "create ID --user USER --role ROLE …", short: "Make an API key; it is printed once", make: apikeyCreate, long: `
Make an API key on this machine and put its hash in force. The key itself is sent
nowhere. It is printed once, when the order is durable.`},
	{use: "revoke ID", short: "Revoke an API key", make: apikeyRevoke, long: `
Revoke an API key. Its row is read from the record of the data directory. Without a data
directory, give --hash and --user as ` + "`apikey create`" + ` printed them.`},
	listing("List API keys", apikeyList),
}

var skillRows = []row{
	{
		use: "approve NAME [--digest DIGEST] [--effect pure|idempotent|once]", short: "Approve one version of a skill of one server; no other version may be called",
		make: skillApprove, complete: skillNames, long: `
Approve one version of a skill of one server. No other version may be called. Without
--digest it is the version that is declared now: the command shows how it differs from
the approved one and asks you. The effect stays the same.`,
	},
	{
		use: "diff NAME", short: "Compare what a skill declares now with what is approved; exit 1 if they differ",
		make: skillDiff, complete: skillNames,
	},
	listing("List approved skills", skillList),
}

var grantRows = []row{{use: "revoke USER", short: "End a user's grants, plans and runs", make: grantRevoke}}

var orderRows = []row{
	{
		use: "resolve INTENT_ID done|failed --reason TEXT", short: "Record how an indeterminate order ended, after you have checked",
		make: orderResolve,
	},
	{
		use: "erase INTENT_ID --reason TEXT", short: "Erase an order's arguments and result from the record, for good",
		make: orderErase, long: `
Erase an order's arguments and result from the record, for good. The record keeps who
asked for what type of order and when, the decision, and the digests of what is gone: it
stays in the ledger, and verify reports parts as withheld. Exit 0: the bytes are gone.
Otherwise the command says what is still there and why; run it again to see when it is
done.`,
	},
}

var executorRows = []row{
	{use: "issue NAME --types T,… --out FILE", short: "Write credentials for an external executor", make: executorIssue, long: `
Make a NATS key for the executor NAME and write its seed to FILE, for that service alone.
With it the service may receive and answer its own types, and nothing else. A running
writ with a NATS listener (--nats) lets it in within a second.`},
	{use: "list", short: "List external executors that have credentials", make: executorList},
	{use: "revoke NAME", short: "Revoke the credentials of a service; it is disconnected within a second", make: executorRevoke},
	{
		use: "check NAME [--catalog DIR] [-- COMMAND ARG …]", short: "Send the ticket test vectors to a service, in any language",
		make: executorCheck, args: cobra.MinimumNArgs(1), long: `
Send a service good and forged tickets over NATS and check its answers: it must carry out
orders with a good ticket and refuse all others. The command makes a bus, credentials and
keys for the check and gives them to COMMAND as variables: WRIT_EXECUTOR, WRIT_NATS_URL,
WRIT_NATS_SEED_FILE, WRIT_URL. Without COMMAND it prints them, and you start the service
yourself. The service carries out real orders: do not connect it to anything valuable.`,
	},
}

var contextRows = []row{
	{use: "list", short: "List contexts; * marks the one in use", make: contextList},
	{use: "use NAME", short: "Choose a context for the next commands; \"\" for none", make: contextUse, complete: contextNames},
	{use: "show", short: "Show which writ commands use now, and where that is set", make: contextShow},
	{
		use: "set NAME [--url URL] [--data DIR] [--key-file FILE]", short: "Create a context, or change the given values of one",
		make: contextSet, complete: contextNames,
	},
	{use: "remove NAME", short: "Remove a context", make: contextRemove, complete: contextNames},
}

var sandboxRows = []row{
	{use: "run SCRIPT", short: "Run one script as an order would", make: sandboxRunCommand},
	{use: "probe", short: "Try to escape from every sandbox driver that works here", make: sandboxProbe, long: `
Run the escape suite under every driver that works on this machine, and print the result
of each probe. Exits 1 if a probe got through or no driver works.

  blocked  it did not get through
  open     it got through where docs/sandbox.md says so
  ESCAPED  it got through
  broken   it proved nothing`},
	{use: "prepare", short: "Make the Python runtime that the first start would make", make: sandboxPrepare},
}

var storageRows = []row{
	{use: "status", short: "Show sizes, versions, what is behind, and free disk space", make: storageStatus, long: `
Show sizes and versions of the stores, the number of documents of each index, how far
ledger and projections are behind the journal, and how much disk is free. writ may run
meanwhile. Exits 1 if less disk is free than the configured minimum.`},
	{use: "migrate", short: "Bring tables and indices to the version of this program; there is no way back", make: storageMigrate, long: `
Bring tables and indices to the version of this program, as every start does. Only a
backup brings the old version back. With --check nothing is written, writ may run, and
the exit code is 1 if a version is not this program's. OpenSearch has no versions.`},
	{
		use: "reindex INDEX | --search [INDEX]", short: "Rebuild a projection or a search index; writ must not run",
		make: storageReindex, args: cobra.MaximumNArgs(1), long: `
Rebuild a projection of the journal: agent_plans, agent_events or agent_orders. With
--search, rebuild the search entries from the documents: in SQLite, the entries of all
indices together; in OpenSearch, a new index behind the alias, with the mapping of this
program. Without INDEX, behind every alias. The next run completes one that was
interrupted.`,
	},
	{use: "gc", short: "Remove what has expired, is too old, left over or unnamed; writ must not run", make: storageCollect, long: `
Remove expired memories, documents older than their tenant's retention, temporary files
of steps that never ended (a running writ removes all these itself), and blobs that no
record has named for two days. Journal and ledger are never touched.`},
	{
		use: "copy --from URL|DIR --to URL|DIR", short: "Copy all documents to another store and compare both; writ must not run",
		make: storageCopy, long: `
Copy the documents of all tenants of the record in --data from one store to another.
Compare both by count and digest, for each index and tenant. DIR is a data directory. URL
is an OpenSearch with the settings of the configuration. writ must not run on either
store. Exits 1 if they differ.`,
	},
	{use: "move --to URL", short: "Move all artifacts to another store; writ must not run", make: storageMove, long: `
Copy the artifacts (cas://) of all tenants from their present store to an object store, or
back into the data directory (--to dir). The directory remembers the new place. Every
digest is checked. The old place keeps its copies. Run it again if it was interrupted.
Credentials of an S3 may be in the environment.`},
}

// listing is the command `list` of a group: what lines says of each tenant.
func listing(short string, lines listOf) row {
	return row{use: "list", short: short + ", from the record of the data directory", make: tenantsList(lines)}
}
