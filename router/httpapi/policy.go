package httpapi

import "time"

// inForce is GET /v1/policy: the policy that decides now.
type inForce struct {
	Digest   string `json:"digest"`
	Revision int64  `json:"revision,omitempty"` // absent: the tree has none
	Since    string `json:"since"`              // RFC 3339: when this process put it in force
	Refused  int64  `json:"refused"`            // trees that were not put in force since it began
}

func (v *visitor) policy() (any, error) {
	live := v.s.cfg.Policy
	e := live.Engine()
	return inForce{e.Digest(), e.Revision(), live.Since().UTC().Format(time.RFC3339), live.Refusals()}, nil
}
