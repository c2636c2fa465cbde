package policies

import "aob.dev/writ/intents"

// Data is the directory as policies see it. Every change makes a new generation of the engine
// (Engine.WithData), so a remembered decision never outlives the data it read.
type Data = intents.PolicyData

// document is the data as JSON values, with every member present.
func document(d Data) (map[string]any, error) {
	value, err := plainJSON(d)
	doc, _ := value.(map[string]any)
	for key, value := range doc {
		if value == nil {
			doc[key] = map[string]any{}
		}
	}
	return doc, err
}
