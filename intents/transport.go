package intents

// Transport is how the exchange with a skill server went, as its executor reports. An answer is no
// failure, whatever its content.
type Transport struct {
	Sent    bool `json:"sent"` // the server may have seen the call
	Failure bool `json:"failure"`
}
