package intents

// Transport describes the exchange with a skill server, as its executor reports it. An answer is no
// failure, whatever its content.
type Transport struct {
	Sent    bool `json:"sent"` // the server may have seen the call
	Failure bool `json:"failure"`
}
