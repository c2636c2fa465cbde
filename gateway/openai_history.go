package gateway

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/problem"
)

// Clients of OpenAI's API have no session: they send the whole conversation with each request. Only
// the last message of the user must be readable. What cannot be used of the others is left out, and
// counted for the prompt.

// chatMessage is one message of a conversation, read as far as it makes sense.
type chatMessage struct {
	ID, Role string // ID is the client's
	Content  json.RawMessage
	Refusal  string // in place of content
}

// UnmarshalJSON never fails: what has another form than OpenAI's API knows is empty.
func (m *chatMessage) UnmarshalJSON(raw []byte) error {
	var members map[string]json.RawMessage
	_ = json.Unmarshal(raw, &members)
	for name, into := range map[string]*string{"id": &m.ID, "role": &m.Role, "refusal": &m.Refusal} {
		_ = json.Unmarshal(members[name], into)
	}
	m.Content = members["content"]
	return nil
}

// saidBy maps roles to speakers. Answers of tools are no instructions, and are left out.
var saidBy = map[string]string{"user": catalog.SpeakerUser, "assistant": catalog.SpeakerAgent, "system": catalog.SpeakerSystem, "developer": catalog.SpeakerSystem}

// Bounds of a conversation before its last message: the newest part of the history, in bytes of
// JSON, and the beginning of the instructions. plan.open has room for maxOpened of both with the
// message, so there are 24 KB for a history beside the longest message.
const (
	maxBefore         = 32_000
	maxBeforeMessages = 99
	maxOpened         = 44_600
	maxInstructions   = 4 << 10
)

// conversation returns the message of a turn, the last one of the user, with the parts of the
// others for its prompts. Instructions come before those of the messages.
func conversation(messages []chatMessage, pointer, instructions string) (q turnRequest, err error) {
	last := len(messages) - 1
	for last >= 0 && messages[last].Role != "user" {
		last--
	}
	if last < 0 {
		return q, problem.New(intents.SchemaInvalid, pointer, "there is no message of the user")
	}
	at := fmt.Sprintf("%s/%d/content", pointer, last)
	if messages[last].unreadable() {
		return q, problem.New(intents.SchemaInvalid, at, "must be a text or a list of parts")
	}
	q.readLast(messages[last])
	if err := checkSize(q.message, at, maxLong); err != nil {
		return q, err
	}
	for _, m := range messages[:last] {
		if saidBy[m.Role] == catalog.SpeakerSystem {
			instructions = strings.TrimSpace(instructions + "\n" + m.text())
		}
	}
	q.instruct(instructions)
	room := maxOpened - sizeInJSON(q.message[:min(len(q.message), maxMessage)]) - sizeInJSON(q.transient.AddedInstruction)
	for _, ref := range q.about.Images {
		room -= sizeInJSON(ref)
	}
	room = min(room, maxBefore)
	for _, m := range slices.Backward(messages[:last]) {
		by, said := saidBy[m.Role], m.text()
		switch size := sizeInJSON(said); {
		case by == catalog.SpeakerSystem, said == "" && by != "" && !m.unreadable():
		case by != "" && said != "" && size <= room && len(q.about.History) < maxBeforeMessages:
			q.about.History = append(q.about.History, catalog.ChatMessage{Role: by, Content: said})
			room -= size
		default:
			q.about.LeftOut++
			if by != "" && said != "" { // the ones before it are out of context
				room = 0
			}
		}
	}
	slices.Reverse(q.about.History)
	return q, nil
}

// instruct adds the beginning of instructions.
func (q *turnRequest) instruct(text string) {
	q.transient.AddedInstruction = strings.ToValidUTF8(text[:min(len(text), maxInstructions)], "")
}

// readLast reads the message of the turn, with its images.
func (q *turnRequest) readLast(m chatMessage) {
	var texts []string
	for _, p := range m.parts() {
		ref := p.image()
		if ref == "" || len(q.about.Images) == maxImages {
			texts = append(texts, p.said())
			continue
		}
		q.about.Images = append(q.about.Images, ref)
		if ref != p.URL {
			q.images = append(q.images, p.URL)
		}
	}
	q.id, q.message = m.ID, strings.Join(texts, "\n")
	if q.message == "" && len(q.about.Images) > 0 {
		q.message = "[image]"
	}
}

// sizeInJSON returns the size of a text in an intent.
func sizeInJSON(text string) int {
	raw, _ := intents.MarshalPlain(text) // a text always has JSON
	return len(raw)
}

// part is one part of a message: a text, or an image with its URL. Others are named.
type part struct{ Type, Text, Refusal, URL string }

// UnmarshalJSON reads a part, or a text in place of one. It never fails.
func (p *part) UnmarshalJSON(raw []byte) error {
	if json.Unmarshal(raw, &p.Text) == nil {
		p.Type = "text"
		return nil
	}
	var members map[string]json.RawMessage
	_ = json.Unmarshal(raw, &members)
	for name, into := range map[string]*string{"type": &p.Type, "text": &p.Text, "refusal": &p.Refusal} {
		_ = json.Unmarshal(members[name], into)
	}
	var image struct{ URL string }
	if json.Unmarshal(members["image_url"], &p.URL) != nil && json.Unmarshal(members["image_url"], &image) == nil {
		p.URL = image.URL
	}
	return nil
}

// Images of the last message go to models as they are. writ fetches none.
const (
	maxImages   = 8
	maxImageURL = 2048
)

var dataImage = regexp.MustCompile(`^data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+={0,2}$`)

// image returns the URL of an image as a plan names it; empty: the part is none that models take.
func (p part) image() string {
	u, err := url.Parse(p.URL)
	switch {
	case dataImage.MatchString(p.URL):
		return intents.Digest([]byte(p.URL))
	case err == nil && u.Scheme == "https" && u.Host != "" && len(p.URL) <= maxImageURL:
		return p.URL
	}
	return ""
}

var partType = regexp.MustCompile(`^[a-z_]{1,32}$`)

// said returns the text of a part, or a note in place of it.
func (p part) said() string {
	switch {
	case strings.HasSuffix(p.Type, "text"): // text, input_text, output_text
		return p.Text
	case p.Type == "refusal":
		return p.Refusal
	case partType.MatchString(p.Type):
		return "[" + p.Type + " left out]"
	}
	return "[part left out]"
}

// parts returns the parts of a message; none if it has no content that can be read.
func (m chatMessage) parts() (all []part) {
	var one part
	switch {
	case json.Unmarshal(m.Content, &all) == nil: // null, too
	case strings.HasPrefix(string(m.Content), `"`), strings.HasPrefix(string(m.Content), "{"):
		_ = json.Unmarshal(m.Content, &one) // never fails
		all = []part{one}
	}
	return all
}

// unreadable reports whether a message has content that is no text and no parts.
func (m chatMessage) unreadable() bool {
	return len(m.Content) > 0 && !strings.ContainsAny(string(m.Content[:1]), `"[{n`)
}

func (m chatMessage) text() string {
	var texts []string
	for _, p := range m.parts() {
		texts = append(texts, p.said())
	}
	if text := strings.Join(texts, "\n"); text != "" {
		return text
	}
	return m.Refusal
}
