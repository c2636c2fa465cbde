package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/client"
)

func intentCommand(std IO) *cobra.Command {
	return group("intent", "Write, check, seal, show, verify and submit orders", newCommand(std), lintCommand(std), signCommand(std), showCommand(std), verifyCommand(std), submitCommand(std))
}

// verdict of `writ intent verify`; scripts rely on the shape.
type verdict struct {
	Valid    bool         `json:"valid"`
	Code     intents.Code `json:"code"`
	Pointer  string       `json:"pointer"`
	Reason   string       `json:"reason"`
	IntentID string       `json:"intent_id"`
	KID      string       `json:"kid"`
}

func verifyCommand(std IO) *cobra.Command {
	var keys, at string
	cmd := answering(std, &cobra.Command{
		Use: "verify [FILE|-] --keys JWKS", Short: "Check form, signature and grant of an order, offline", Args: cobra.MaximumNArgs(1),
	}, func(_ *cobra.Command, args []string) (answer, error) {
		raw, err := input(std, args)
		if err != nil {
			return answer{}, malformed(err)
		}
		verifier, err := readKeys(keys)
		if err != nil {
			return answer{}, malformed(err)
		}
		if at != "" {
			if verifier.Now, err = time.Parse(time.RFC3339, at); err != nil {
				return answer{}, usage(fmt.Errorf("--at: %q is not an RFC 3339 time", at))
			}
		}
		v := verdict{Code: intents.OK}
		u, err := intents.Parse(raw)
		if err == nil {
			v.IntentID, v.KID = u.ID(), u.KID()
			err = verify(u, verifier)
		}
		var refusal *intents.Refusal
		if errors.As(err, &refusal) {
			v.Code, v.Pointer, v.Reason = refusal.Code, refusal.Pointer, refusal.Reason
		}
		v.Valid = err == nil
		return answer{data: v, text: line(v) + "\n", end: unless(v.Valid, "not valid")}, nil
	})
	cmd.Flags().StringVar(&keys, "keys", "", "JWKS file, as /.well-known/jwks.json serves it")
	cmd.Flags().StringVar(&at, "at", "", "judge key, grant and ttl_sec at this RFC 3339 time (default: not judged)")
	mustGive(cmd, "keys")
	return cmd
}

// verify checks an order by itself; at the verifier's time, if it has one, the
// order must also be fresh.
func verify(u *intents.Unverified, v intents.Verifier) error {
	e, err := u.Verify(v)
	switch {
	case err != nil || v.Now.IsZero():
		return err
	case e.IssuedAt().After(v.Now.Add(intents.Leeway)):
		return intents.Refuse(intents.NotYetValid, "/constraints/issued_at", "issued_at lies after --at")
	case v.Now.After(e.IssuedAt().Add(e.TTL()).Add(intents.Leeway)):
		return intents.Refuse(intents.ExpiredTTL, "/constraints/ttl_sec", "the order was older than its ttl_sec")
	}
	return nil
}

func line(v verdict) string {
	if v.Valid {
		return "valid " + v.IntentID
	}
	s := string(v.Code)
	if v.Pointer != "" {
		s += " at " + v.Pointer
	}
	return s + ": " + v.Reason
}

// readKeys makes a verifier of a JWKS file.
func readKeys(path string) (intents.Verifier, error) {
	raw, err := os.ReadFile(path) //nolint:gosec // G304: the user names the file
	if err != nil {
		return intents.Verifier{}, err
	}
	var set intents.JWKS
	if err := json.Unmarshal(raw, &set); err != nil {
		return intents.Verifier{}, fmt.Errorf("%s: not a JWKS: %v", path, err)
	}
	keys, err := set.Admit()
	if err != nil {
		return intents.Verifier{}, fmt.Errorf("%s: %v", path, err)
	}
	return intents.Verifier{Origin: set.Origin, Keys: intents.KeysFunc(func(kid string) (intents.Key, error) {
		k, ok := keys[kid]
		switch {
		case !ok:
			return intents.Key{}, intents.Refuse(intents.KeyUnknown, "/sig", "no key with this kid is in the JWKS")
		case k.Revoked:
			return intents.Key{}, intents.Refuse(intents.KeyRevoked, "/sig", "key is revoked")
		}
		return k, nil
	})}, nil
}

// input reads a named file, or standard input for "-" and nothing.
func input(std IO, args []string) ([]byte, error) {
	r := std.In
	if len(args) > 0 && args[0] != "-" {
		f, err := os.Open(args[0])
		if err != nil {
			return nil, err
		}
		defer f.Close()
		r = f
	}
	return io.ReadAll(io.LimitReader(r, 1<<20))
}

// refused is the answer about an order that was refused, in the shape of one
// that was not.
type refused struct {
	intents.Answer
	PolicyIDs []string `json:"policy_ids,omitempty"`
	Retryable bool     `json:"retryable"`
}

func refusedBy(p *client.Error) refused {
	return refused{intents.Answer{
		IntentID: p.IntentID, TraceID: p.TraceID, Code: p.Code, Pointer: p.Pointer, Reason: p.Detail,
		Hint: p.Hint, Violations: p.Violations, Position: p.Position, Decision: p.Decision, Outcome: p.Outcome, Receipt: p.Receipt,
	}, p.PolicyIDs, p.Retryable}
}

func submitCommand(std IO) *cobra.Command {
	var url, data string
	var dry, asJSON bool
	cmd := &cobra.Command{
		Use: "submit [FILE|-]", Short: "Send a sealed order to a router", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			raw, err := input(std, args)
			if err != nil {
				return malformed(err)
			}
			query := ""
			if dry {
				query = "?dry_run=true"
			}
			_, body, err := client.Client{URL: url}.Submit(cmd.Context(), raw, query)
			var problem *client.Error
			if errors.As(err, &problem) {
				if asJSON {
					err = errors.Join(printJSON(std.Out, refusedBy(problem)), err)
				}
				if dry { // it left no trace that could be explained
					err = errors.New(err.Error())
				}
				return no(err)
			}
			if err != nil {
				return no(err)
			}
			a, err := answerIn(body, url)
			if err != nil {
				return err
			}
			said := answer{data: a, text: fmt.Sprintln(a.Code, a.IntentID)}
			if a.Code != intents.OK {
				said.end = no(fmt.Errorf("%s: %s", a.Code, a.Reason))
			}
			return said.print(std, asJSON)
		},
	}
	placeFlags(cmd, &url, &data)
	cmd.Flags().BoolVar(&dry, "dry-run", false, "decide only; leaves no trace")
	jsonFlag(cmd, &asJSON)
	return cmd
}
