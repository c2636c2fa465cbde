package httpapi

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/problem"
)

// values reports what each parameter of a list accepts.
type values struct {
	has  func(value string) bool
	says string // to people
}

// accepted are the values of the parameters of lists.
var accepted = map[string]values{
	"status":       oneOf(catalog.PlanPending, catalog.PlanPlanning, catalog.PlanExecuting, catalog.PlanReplanning, catalog.PlanComplete, catalog.PlanFailed),
	"kind":         oneOf(catalog.KindAgent, catalog.KindWorkflow),
	"workflow_id":  names,
	"name":         names,
	"runs":         boolean,
	"session":      boolean,
	"by_day":       boolean,
	"whole_tenant": boolean,
	"since":        moment,
	"until":        moment,
	"limit":        {regexp.MustCompile(`^([1-9][0-9]?|100)$`).MatchString, "must be 1 to 100"},
	"after":        {func(v string) bool { return v != "" && len(v) <= maxCursor }, "must be the cursor of an earlier page"},
}

var (
	boolean = oneOf("true", "false")
	names   = values{parameter.MatchString, "must have up to 64 letters, digits, _, . and -"}
	moment  = values{func(v string) bool {
		_, err := time.Parse(time.RFC3339Nano, strings.ToUpper(v))
		return err == nil
	}, "must be a time as 2026-01-31T10:00:00Z"}
)

func oneOf[S ~string](all ...S) values {
	quoted := make([]string, len(all))
	for i, v := range all {
		quoted[i] = `"` + string(v) + `"`
	}
	return values{func(v string) bool { return slices.Contains(all, S(v)) }, "must be one of " + strings.Join(quoted, ", ")}
}

// accepts refuses parameters that the route does not have, and values that they cannot have.
func (v *visitor) accepts(own ...string) error {
	for name, given := range v.Request.URL.Query() {
		pointer := ""
		if accepted[name].has != nil {
			pointer = "/" + name
		}
		switch {
		case !slices.Contains(own, name):
			return problem.New(intents.SchemaInvalid, pointer, "there is no such parameter here; there are: "+strings.Join(own, ", "))
		case len(given) != 1:
			return problem.New(intents.SchemaInvalid, pointer, "the parameter comes twice")
		case !accepted[name].has(given[0]):
			return problem.New(intents.SchemaInvalid, pointer, accepted[name].says)
		}
	}
	return nil
}
