package catalog

// CallerKey is a caller's own key for skill servers, for the calls of a session. It travels sealed
// under the key of links, which gateways and executors share.
type CallerKey struct {
	Tenant  string `json:"tenant"`
	UserID  string `json:"user_id"`
	Session string `json:"session_id"`
	Key     string `json:"key"`
}

// CallerKeyUse is the use of the key of links to seal these.
const CallerKeyUse = "writ caller's skill key v1\n"
