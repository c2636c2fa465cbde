package intents

// Code is why an intent was refused or how it ended. The set is closed: the same
// string appears in HTTP bodies, metrics, records and docs/codes.md.
type Code string

// Refusals, by the stage that returns them.
const (
	OK Code = "OK"

	SchemaInvalid       Code = "SCHEMA_INVALID"       // 1, 3
	PayloadTooLarge     Code = "PAYLOAD_TOO_LARGE"    // 1
	SignatureInvalid    Code = "SIGNATURE_INVALID"    // 2
	KeyUnknown          Code = "KEY_UNKNOWN"          // 2
	KeyRevoked          Code = "KEY_REVOKED"          // 2, 5
	GrantInvalid        Code = "GRANT_INVALID"        // 2
	UnknownIntent       Code = "UNKNOWN_INTENT"       // 3
	KeyRole             Code = "KEY_ROLE"             // 3
	TaskScope           Code = "TASK_SCOPE"           // 3
	ExpiredTTL          Code = "EXPIRED_TTL"          // 4
	NotYetValid         Code = "NOT_YET_VALID"        // 4
	ConflictIdempotency Code = "CONFLICT_IDEMPOTENCY" // 5
	InFlight            Code = "IN_FLIGHT"            // 5, 8
	MalformedArgs       Code = "MALFORMED_ARGS"       // 5, 9
	SessionBusy         Code = "SESSION_BUSY"         // 5
	RBACForbidden       Code = "RBAC_FORBIDDEN"       // 6
	PolicyDenied        Code = "POLICY_DENIED"        // 7
	ApprovalRequired    Code = "APPROVAL_REQUIRED"    // 7
	Overloaded          Code = "OVERLOADED"           // 8
	DispatchUnavailable Code = "DISPATCH_UNAVAILABLE" // 9
	ExecutorTimeout     Code = "EXECUTOR_TIMEOUT"     // 9
	ExecutorFailed      Code = "EXECUTOR_FAILED"      // 9
	Indeterminate       Code = "INDETERMINATE"        // 9
)

// Outcomes, and what only an edge answers.
const (
	Changed           Code = "CHANGED"
	Abandoned         Code = "ABANDONED"
	StaleWrite        Code = "STALE"
	OversizedOutput   Code = "OVERSIZED_OUTPUT"
	MemoryLock        Code = "MEMORY_LOCK"
	ContractViolation Code = "CONTRACT_VIOLATION"
	ApprovalRejected  Code = "APPROVAL_REJECTED"
	ApprovalExpired   Code = "APPROVAL_EXPIRED"
	Cancelled         Code = "CANCELLED"
	RateLimited       Code = "RATE_LIMITED"
	NotFound          Code = "NOT_FOUND"
	Unauthorized      Code = "UNAUTHORIZED"
	AuditRequired     Code = "AUDIT_REQUIRED"
	Internal          Code = "INTERNAL"
)
