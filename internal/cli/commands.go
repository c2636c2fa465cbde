package cli

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/state"
)

// row is one command of the command line, or a group of them. Its help beyond the short line is in
// help.txt.
type row struct {
	use, short string
	args       cobra.PositionalArgs // nil: those that use names
	make       func(*command)       // declares the flags and sets the action; nil: only a group
	group      []row
}

// section is a group of commands in --help.
type section struct {
	title string
	rows  []row
}

// named are the arguments that a usage line names, before any flag; those in brackets may
// be missing, and of one with … there may be more.
func named(use string) cobra.PositionalArgs {
	var must []string
	most := 0
	for _, word := range strings.Fields(use)[1:] {
		if strings.Contains(word, "--") {
			break
		}
		name := strings.TrimSuffix(strings.TrimSuffix(word, "]"), "…")
		if most++; len(name) < len(strings.TrimSuffix(word, "]")) {
			most = 1 << 10
		}
		if word[0] != '[' && name != "" {
			must = append(must, name)
		}
	}
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) < len(must):
			return fmt.Errorf("missing: %s", strings.Join(must[len(args):], " "))
		case len(args) > most && most == 0:
			return fmt.Errorf("%q: it takes no argument", args[0])
		case len(args) > most:
			return fmt.Errorf("%q is one argument too many: put a text with spaces in quotes", args[most])
		}
		return nil
	}
}

// complete refuses a command line without a flag that the command needs.
func complete(cmd *cobra.Command) error {
	var missing []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Annotations[cobra.BashCompOneRequiredFlag] != nil && !f.Changed {
			missing = append(missing, "--"+f.Name+": "+f.Usage)
		}
	})
	if missing == nil {
		return nil
	}
	return usage(fmt.Errorf("missing: %s%s", strings.Join(missing, "; "), usageOf(cmd)))
}

// usageOf is the usage line of a command.
func usageOf(cmd *cobra.Command) string {
	first, _, _ := strings.Cut(strings.TrimSpace(cmd.Example), "\n")
	if first == "" {
		return "\nsee: " + cmd.CommandPath() + " --help"
	}
	return "\nfor example: " + first + "\nsee: " + cmd.CommandPath() + " --help"
}

// sections are all commands, as --help groups them: at most 25.
func sections() []section {
	return []section{
		{"Begin", []row{
			{use: "up", short: "Run everything in one process", make: upCommand},
			{use: "init NAME --skills URL|COMMAND", short: "Write a new directory with an agent and its skill servers", make: initCommand},
			{use: "demo", short: "Show the whole system on real data, then verify all of it", make: demoCommand},
			{use: "doctor", short: "Find what would keep writ up from running", make: doctorCommand},
			{use: "health", short: "Say whether a running writ is ready", make: healthCommand},
		}},
		{"Work", []row{
			{use: "run QUESTION", short: "Ask a running writ to do a task", make: runCommand},
			{use: "chat", short: "Talk with a running writ", make: chatCommand},
			{use: "plan", short: "List, show, follow and cancel plans", group: planRows},
			{use: "workflow", short: "Start, list, show, change and repeat runs of workflows", group: workflowRows},
			{use: "approvals", short: "List, show, approve, edit and reject pending approvals", group: approvalRows},
			{use: "query [MODE] QUERY", short: "Look up, search or follow memories, or run a query", make: queryCommand},
			{use: "kb", short: "Add, search, list and remove documents of the knowledge base", group: kbRows},
			{use: "mcp", short: "Serve the tools of a running writ to an MCP client on the standard streams", make: mcpCommand},
		}},
		{"Agents, skills and rules", []row{
			{use: "skill", short: "Approve, compare and list skills, and clear kept answers", group: skillRows},
			{use: "registry", short: "Check, list, show, evaluate and push agents", group: registryRows},
			{use: "policy", short: "Check, test, explain, sign and try out policies", group: policyRows},
		}},
		{"Tenants and people", []row{
			{use: "tenant", short: "Create and list tenants, and set their data and roles", group: tenantRows},
			{use: "login", short: "Sign in to a writ elsewhere, in any browser", make: loginCommand},
			{use: "notify", short: "Test where people are told of approvals that wait for them", group: notifyRows},
			{use: "user", short: "Set, list and erase users, and revoke their grants", group: userRows},
			{use: "apikey", short: "Make, list and revoke API keys", group: apikeyRows},
		}},
		{"Record", []row{
			{use: "intent", short: "Write, check, sign, verify, submit, resolve and erase intents", group: intentRows},
			{use: "audit", short: "Export, verify, replay and prove the record", group: auditRows},
		}},
		{"Operation", []row{
			{use: "stop", short: "Stop a tenant, an agent or a skill server at once", make: stopCommand},
			{use: "resume", short: "Have a tenant go on after a stop", make: resumeCommand},
			{use: "admin", short: "Manage signing keys, other services, stores, backups and cells", group: adminRows},
		}},
	}
}

var adminRows = []row{
	{use: "keys", short: "Make, list, rotate and revoke keys", group: keyRows},
	{use: "executor", short: "Manage external executors, which carry out their own intent types", group: executorRows},
	{use: "events", short: "Manage other systems that read events of a tenant", group: eventRows},
	{use: "alerts", short: "Show alerts and their figures, and test their receivers", group: alertRows},
	{use: "confirm CONDITION", short: "Confirm that you checked what stops writ from accepting intents", make: confirmCommand},
	{use: "storage", short: "Maintain the stores: sizes, versions, projections, copies", group: storageRows},
	{use: "backup DIR|FILE.tar", short: "Copy a data directory, even while writ runs on it", make: backupCommand},
	{use: "restore DIR|FILE.tar --data DIR", short: "Make a data directory from a backup, and check all of it", make: restoreCommand},
	{use: "sandbox", short: "Try the sandbox", group: sandboxRows},
	{use: "cell", short: "Make, run and look after a cell: roles in separate processes", group: cellRows},
}

var intentRows = []row{
	{use: "new TYPE", short: "Print an intent of a type to fill in", make: intentNew},
	{use: "produce SENTENCE…", short: "Have an agent make and sign one intent from a sentence", make: intentProduce},
	{use: "lint [FILE|-]", short: "List everything that is wrong with an intent", make: intentLint},
	{use: "sign [FILE|-] --signer FILE", short: "Sign an intent with a key", make: intentSign},
	{use: "verify [FILE|-] --keys JWKS", short: "Check form, signature and grant of an intent, offline", make: intentVerify},
	{use: "submit [FILE|-]", short: "Send a signed intent to a router", make: intentSubmit},
	{
		use: "resolve INTENT_ID done|failed --reason TEXT", short: "Record how an indeterminate intent ended, after you have checked",
		make: intentResolve,
	},
	{use: "erase INTENT_ID --reason TEXT", short: "Erase an intent's arguments and result from the record, for good", make: intentErase},
	{use: "receipt", short: "Get and verify receipts", group: receiptRows},
}

var auditRows = []row{
	{use: "export --out FILE", short: "Write a bundle that can be verified without any other source", make: auditExport},
	{
		use: "verify BUNDLE", short: "Check a bundle offline: every signature, key, grant, task and Merkle proof",
		make: auditVerify(false),
	},
	{
		use: "replay BUNDLE", short: "Verify a bundle and decide every intent in it again; nothing is carried out",
		make: auditVerify(true),
	},
	{use: "show INTENT_ID", short: "Show the records of an intent", make: auditShow},
	{use: "search [TEXT …]", short: "Find records by filters and words", make: auditSearch},
	{use: "fsck", short: "Check a data directory: journal, ledger, blobs and documents", make: auditFsck},
	{use: "prove INTENT_ID", short: "Print the receipt, inclusion proofs and keys of one intent as one JSON document", make: auditProve},
	{use: "tail", short: "Print the records, one per line", make: auditTail},
	{use: "trust", short: "Print the trust file of a log, which auditors get separately from the bundles", make: auditTrust},
}

var policyRows = []row{
	{use: "check [DIR]", short: "Compile strictly, and list what the policy reads", make: policyCheck},
	{use: "test [DIR]", short: "Run Rego tests and decision tables; a tree without tests fails", make: policyTest},
	{use: "explain INTENT_ID", short: "Show which rules decided a recorded intent, and their input", make: policyExplain},
	{use: "backtest --policy NEW", short: "Decide the recorded intents under a new policy; exit 1 if a decision changes", make: policyBacktest},
	{
		use: "push DIR --revision N", short: "Put a policy tree in force for all tenants; the router proves it first",
		make: policyPush,
	},
	{use: "shadow [DIR] [--end]", short: "Try a policy tree on live decisions, without effect, and show what it decides otherwise", make: policyShadow},
}

var registryRows = []row{
	{use: "check DIR", short: "Check the agents of a directory; exit 1 if there is a fault", make: registryCheck},
	{use: "list [DIR]", short: "List the built-in agents, and those of a directory", make: registryList},
	{use: "show NAME [DIR]", short: "Show an agent: its definition, what it may do, and its system prompt", make: registryShow},
	{use: "push DIR", short: "Put the agents of a directory in force for a tenant", make: registryPush},
	{use: "revert", short: "Put the previous revision in force again", make: registryRevert},
	{use: "eval [DIR]", short: "Ask a running writ test cases, or have a model judge recorded turns", make: evalCommand},
	{use: "probe URL [FILE]", short: "Check the 15 points that a remote agent must meet", make: agentProbe},
}

var keyRows = []row{
	{use: "init", short: "Make the keys of a new data directory, offline", make: keysInit},
	{use: "list", short: "List the keys in force and the revoked keys", make: keysList},
	{use: "rotate ROLE", short: "Give a role a new key; the old one is accepted for a while", make: keysRotate},
	{use: "add --subject USER --tenant T (--out FILE|--jwk FILE) [--raw]", short: "Put another operator's key in force", make: keysAdd},
	{use: "revoke KID", short: "Refuse a key from now on", make: keysRevoke},
	{use: "put [FILE|-]", short: "Put a signed key set in force", make: keysPut},
	{use: "export", short: "Print the public keys as JWKS, or the trust file for auditors", make: keysExport},
	{use: "root", short: "Show the root key, take it offline, sign a key set with it", group: []row{
		{use: "show", short: "Print the thumbprint of the root key, and whether its file is here", make: rootShow},
		{use: "move FILE", short: "Move the root key out of the data directory", make: rootMove},
		{use: "sign FILE", short: "Sign a prepared key set, offline", make: rootSign},
	}},
}

var tenantRows = []row{
	{use: "add ID", short: "Create a tenant with the default roles; only operators of system may", make: tenantAdd},
	{use: "data KEY JSON", short: "Set data of a tenant that policies read, such as approval or skills_allow", make: tenantData},
	{use: "role", short: "Set and list roles", group: roleRows},
	listing("List tenants with all rows that operators put", "tenants", "", func(r state.TenantRows) any { return r }),
}

var roleRows = []row{
	{use: "put NAME --capability AREA:VERB …", short: "Set the capabilities of a role; without any, it has none", make: rolePut},
	listing("List roles", "roles", "no role is there: writ tenant role put NAME --capability AREA:VERB makes one", func(r state.TenantRows) any { return r.Roles }),
}

var userRows = []row{
	{use: "put ID --role ROLE …", short: "Set the roles of a user; they limit the roles of every API key", make: userPut},
	{use: "revoke USER", short: "End a user's grants, plans and runs", make: grantRevoke},
	{use: "erase USER --reason TEXT", short: "Disable a user and erase what the user said and did, for good; prints what goes and what stays", make: userErase},
	listing("List users", "users", "no user has roles of their own, so each has those of the API key: writ user put ID --role ROLE sets them", func(r state.TenantRows) any { return r.Users }),
}

var apikeyRows = []row{
	{use: "create ID --user USER --role ROLE …", short: "Make an API key; it is printed once", make: apikeyCreate},
	{use: "revoke ID", short: "Revoke an API key", make: apikeyRevoke},
	listing("List API keys", "apikeys", "no API key is there: writ apikey create ID --user USER makes one", func(r state.TenantRows) any { return r.APIKeys }),
}

var skillRows = []row{
	{
		use: "approve NAME … [--effect pure|idempotent|once] [--destructive yes|no]", short: "Approve one version of a skill of one server, or of several skills; no other version may be called",
		make: skillApprove,
	},
	{
		use: "revoke NAME …", short: "Withdraw the approval of skills; they stay refused until they are approved again",
		make: skillRevoke,
	},
	{
		use: "diff NAME", short: "Compare what a skill declares now with what is approved; exit 1 if they differ",
		make: skillDiff,
	},
	{use: "list", short: "List approved skills, from the record of the data directory, and those that wait for an approval", make: skillList},
	{use: "connect SERVER", short: "Get a link at which you connect to a skill server under your own account", make: asks(request[connecting]{
		method: http.MethodPost, path: "/agent/connections", body: connectTo, text: shown[connecting]("connect.link"),
	})},
	{use: "disconnect SERVER", short: "End your connection to a skill server, or with --of somebody's", make: asks(request[catalog.SkillDisconnectResult]{
		method: http.MethodDelete, path: "/agent/connections/{}", query: []param{{flag: "of", member: "user_id", help: "user whose connection to end, which needs admin:connections (default: yours)"}}, text: disconnectedText,
	})},
	{use: "cache", short: "Count and clear kept answers of skills", group: cacheRows},
}

var executorRows = []row{
	{use: "issue NAME --types T,… --out FILE", short: "Write credentials for an external executor", make: executorIssue},
	{use: "list", short: "List external executors that have credentials", make: externalList(datadir.Executors)},
	{use: "revoke NAME", short: "Revoke the credentials of a service; it is disconnected within a second", make: externalRevoke(datadir.Executors)},
}

var eventRows = []row{
	{use: "issue NAME --tenant T --out FILE", short: "Write credentials for a reader of a tenant's events", make: eventsIssue},
	{use: "list", short: "List readers of events that have credentials", make: externalList(datadir.EventReaders)},
	{use: "revoke READER", short: "Revoke the credentials of a reader; it is disconnected within a second", make: externalRevoke(datadir.EventReaders)},
}

var sandboxRows = []row{
	{use: "run SCRIPT", short: "Run one script as an intent would", make: sandboxRunCommand},
}

var storageRows = []row{
	{use: "status", short: "Show sizes, versions, backlogs and free disk space", make: storageStatus},
	{
		use: "reindex INDEX | --search [INDEX]", short: "Rebuild a projection or a search index; writ must not run",
		make: storageReindex, args: cobra.MaximumNArgs(1),
	},
	{use: "gc", short: "Remove expired, outdated and unused data; writ must not run", make: storageCollect},
	{use: "copy --from URL|DIR --to URL|DIR", short: "Copy all documents to another store and compare both; writ must not run", make: storageCopy},
}

// listing is the command `list` of a group: the rows of each tenant, by a text template.
func listing(short, text, none string, of func(state.TenantRows) any) row {
	return row{use: "list", short: short + ", from the record of the data directory", make: func(c *command) { c.listing(text, none, of) }}
}
