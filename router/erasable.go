package router

import (
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// erasable says whether the order may be taken out of its record one day: nothing
// in the log rests on a refused one, nor on one that an executor carries out. Its
// summary stays in its place.
func (o *order) erasable() bool {
	return o.decision.Verdict == intents.Deny || o.row.Executor != catalog.ExecutorRouter
}
