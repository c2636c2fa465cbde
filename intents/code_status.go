package intents

import "cmp"

// CodeInfo is what a code means at the edges.
type CodeInfo struct {
	Code      Code
	Status    int    // HTTP
	Retryable bool   // the same intent may succeed later, unchanged or signed again
	Title     string // one line, no values of the intent
	Hint      string // what to do, at any door
}

// signerHints are the hints for signers of intents, where they differ from those for callers whose intents writ signs.
var signerHints = map[Code]string{
	ExpiredTTL:          "sign again under the same idempotency key",
	ConflictIdempotency: "use another key, or set context.occurrence if the same intent is meant twice",
	InFlight:            "ask for the intent by its intent_id, or send Prefer: wait=n",
	MalformedArgs:       "change what the reason names, then sign it again under a new idempotency key",
	ApprovalExpired:     "sign it again under a new idempotency key, and tell the approvers: writ approvals list",
	Cancelled:           "if it is still wanted, sign it again under a new idempotency key",
}

// SignerHint is the hint for the signer of the intent; Hint is for callers whose requests writ signs.
func (i CodeInfo) SignerHint() string { return cmp.Or(signerHints[i.Code], i.Hint) }

// Codes lists the closed set, in documentation order.
func Codes() []CodeInfo { return codes }

// Info of a code; an unknown one is Internal.
func (c Code) Info() CodeInfo {
	for _, i := range codes {
		if i.Code == c {
			return i
		}
	}
	return codes[len(codes)-1]
}

var codes = []CodeInfo{
	{OK, 200, false, "done", ""},
	{SchemaInvalid, 400, false, "the intent does not match its schema", "correct what the reason names"},
	{PayloadTooLarge, 413, false, "the intent is larger than 48 KiB or deeper than 32", "send large data by reference: a member \"from\" with a file id, cas:// or an intent_id"},
	{SignatureInvalid, 401, false, "the signature does not match the intent", "sign the RFC 8785 bytes of the envelope without sig, with the key named by kid"},
	{KeyUnknown, 401, false, "no such key is in force", "use a kid of /.well-known/jwks.json, or open a task for it first"},
	{KeyRevoked, 401, false, "the key is revoked, expired, or its task has ended", "use a key that is in force"},
	{GrantInvalid, 401, false, "the grant is missing, expired, revoked or for something else", "get a new one with an API key: POST /v1/grants, or writ intent new"},
	{UnknownIntent, 404, false, "no such intent type is in the catalog", "use a type that GET /v1/catalog lists"},
	{KeyRole, 403, false, "this key's role may not sign this type", "sign with a key of a role that signed_by in GET /v1/catalog names"},
	{TaskScope, 403, false, "outside what the task was opened for", "only their user may use plans and runs; a task may use only its own step, plan, user and the step's skills"},
	{ExpiredTTL, 410, false, "the intent is older than its ttl_sec", "ask again"},
	{NotYetValid, 400, true, "issued_at lies in the future", "set the clock of the signer, then sign again"},
	{ConflictIdempotency, 422, false, "the idempotency key belongs to another intent", "use another idempotency key"},
	{InFlight, 409, true, "the same intent is being carried out", "ask for the intent by its intent_id: GET /v1/intents/{intent_id}"},
	{MalformedArgs, 422, false, "well-formed, but not possible now", "change what the reason names, then send it again"},
	{SessionBusy, 409, false, "the session has an open turn, or this request has already opened one", "follow that plan, or cancel it, before the next message"},
	{RBACForbidden, 403, false, "the actor lacks the capability", "ask an administrator for a role that has it: writ tenant role list, then writ user put USER --role ROLE"},
	{PolicyDenied, 403, false, "a policy denies it", "ask only for what the policies in policy_ids permit; writ policy explain INTENT_ID shows the rules and their input"},
	{ApprovalRequired, 202, false, "held until named people approve", "follow the approval (writ approvals list); nothing has been carried out"},
	{Overloaded, 429, true, "too much work is waiting", "try again after Retry-After"},
	{DispatchUnavailable, 503, true, "no executor for this type is running, or its skill server keeps failing and is not called for now", "start the missing service, or wait; nothing has been carried out"},
	{ExecutorTimeout, 504, true, "the executor did not answer in time", "ask for the outcome by the intent_id (GET /v1/intents/{intent_id}) before you send it again"},
	{ExecutorFailed, 502, false, "the executor failed", "the log of the executor, or of its skill server, says more under the intent_id"},
	{Indeterminate, 502, false, "it is not known whether the effect happened", "do not send it again: an operator finds out what happened and runs writ intent resolve INTENT_ID done|failed --reason TEXT"},
	{Changed, 409, false, "an approver has edited the intent", "the next task of the step signs result.args, with this intent as its cause"},
	{Abandoned, 503, true, "a crash ended it before any effect", "send it again"},
	{StaleWrite, 409, false, "a later intent has already written", "read again and decide anew"},
	{OversizedOutput, 422, false, "the output is larger than allowed", "narrow the script or the request"},
	{MemoryLock, 409, true, "another task holds the memory lock", "try again after a second, then less often, until the other task has ended"},
	{ContractViolation, 422, false, "the data does not match return_spec", "correct the data, or return_spec; each of violations has expected and actual"},
	{ApprovalRejected, 403, false, "an approver rejected it", "do what the approver asks for in the reason, or nothing"},
	{ApprovalExpired, 410, false, "nobody approved it in time", "send it again, and tell the approvers: writ approvals list"},
	{Cancelled, 409, false, "cancelled", "nothing more is carried out; if it is still wanted, ask again"},
	{RateLimited, 429, true, "too many requests", "try again after Retry-After"},
	{NotFound, 404, false, "not found, or not visible to this caller", "check the id, and the tenant and user of the API key; lists such as writ plan list show what this caller may see"},
	{Unauthorized, 401, false, "no valid credential", "send an API key in X-Api-Key (with the APIs of OpenAI and MCP also as bearer token), or as bearer token a grant for reading: read_grant of POST /v1/grants"},
	{AuditRequired, 428, true, "an audit.read must be on record first", "read with an API key: a gateway then signs it"},
	{Internal, 500, true, "the service failed; nothing was accepted", "try again; if it fails again, writ doctor and the server's log say why"},
}
