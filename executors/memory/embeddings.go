package memory

import (
	"encoding/json"
	"strings"
	"time"

	"aob.dev/writ/executors"
	"aob.dev/writ/storage"
)

// EmbedWait bounds how long an intent waits for its vector. A memory is then
// written without one, and a question is answered by words.
const EmbedWait = 5 * time.Second

// Embedded are the memories, whose vectors may come later.
var Embedded = executors.EmbeddedIndex{Index: storage.IndexMemory, Text: func(doc storage.Document) (string, error) {
	var r record
	err := json.Unmarshal(doc.Body, &r)
	return r.embeddable(), err
}}

// embeddable is the text of a memory's vector: its label, the only part of its key in words, and
// its data.
func (r record) embeddable() string {
	return strings.ReplaceAll(r.label(), "_", " ") + "\n" + r.Text
}
