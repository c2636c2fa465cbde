package knowledge

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/sentences"
	"golang.org/x/net/html"

	"aob.dev/writ/executors/knowledge/pdf"
)

// MaxDocument bounds a document, and its text, in bytes.
const MaxDocument = 16 << 20

// Why a document has no text.
var (
	errNotText = errors.New("the document is no UTF-8 text")
	errNoText  = errors.New("the document has no text")
	errLarge   = errors.New("the document has more than 16 MiB: split it")
)

// textOf reads the text of a document. Markdown is read as it is: a model reads it so, too.
func textOf(ctx context.Context, tenant, mediaType string, raw []byte) (text string, err error) {
	switch {
	case len(raw) > MaxDocument:
		return "", errLarge
	case mediaType == "application/pdf":
		text, err = pdf.Text(ctx, tenant, raw, MaxDocument)
	case !utf8.Valid(raw) || bytes.IndexByte(raw, 0) >= 0:
		err = errNotText
	case mediaType == "text/html":
		text = textOfHTML(raw)
	case mediaType == "text/plain" || mediaType == "text/markdown":
		text = string(raw)
	default:
		err = errors.New("documents of this type are not read: give text/plain, text/markdown, text/html or application/pdf")
	}
	text = strings.TrimSpace(text)
	if err == nil && text == "" {
		err = errNoText
	}
	return text, err
}

// unread are the elements whose content is no text for people; inline those that do not end
// a line.
var (
	unread = map[string]bool{"script": true, "style": true, "noscript": true, "template": true, "title": true, "iframe": true, "svg": true}
	inline = map[string]bool{
		"a": true, "abbr": true, "b": true, "bdi": true, "bdo": true, "cite": true, "code": true, "dfn": true, "em": true, "font": true, "i": true, "kbd": true,
		"mark": true, "q": true, "s": true, "samp": true, "small": true, "span": true, "strong": true, "sub": true, "sup": true, "time": true, "u": true, "var": true, "wbr": true,
	}
)

// textOfHTML is the visible text of a page. It reads tokens and builds no tree, so depth is no
// limit.
func textOfHTML(raw []byte) string {
	var out strings.Builder
	z := html.NewTokenizer(bytes.NewReader(raw))
	skip := ""
	for {
		switch kind := z.Next(); kind {
		case html.ErrorToken:
			return lines(out.String())
		case html.TextToken:
			if skip == "" {
				out.WriteString(strings.Join(strings.FieldsFunc(string(z.Text()), func(r rune) bool { return r == '\n' || r == '\r' || r == '\t' }), " "))
			}
		case html.StartTagToken, html.EndTagToken, html.SelfClosingTagToken:
			tag, _ := z.TagName()
			name := string(tag)
			switch {
			case skip == "" && kind == html.StartTagToken && unread[name]:
				skip = name
			case skip == name && kind == html.EndTagToken:
				skip = ""
			}
			if !inline[name] {
				out.WriteByte('\n')
			}
		case html.CommentToken, html.DoctypeToken:
		}
	}
}

// lines leaves out empty ones.
func lines(text string) string {
	var out []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}

// Size of a chunk and its overlap with the previous one, in bytes. A token of English is some 4
// bytes; one of other languages has fewer characters, but hardly fewer bytes: so these are 800 and
// 100 tokens, and no tokenizer is needed.
const (
	chunkBytes   = 800 * bytesPerToken
	overlapBytes = 100 * bytesPerToken

	bytesPerToken = 4
)

// chunks cuts a text at ends of sentences (UAX 29), and within a sentence only if it does not
// fit into one chunk. The next chunk begins with the last sentences of the one before, as
// many as fit into the overlap.
func chunks(text string) (out []string) {
	var now []string // the sentences of the chunk that is being made
	size, fresh := 0, 0
	flush := func() {
		if chunk := strings.TrimSpace(strings.Join(now, "")); fresh > 0 && chunk != "" {
			out = append(out, chunk)
		}
		keep, kept := len(now), 0
		for keep > 0 && kept+len(now[keep-1]) <= overlapBytes {
			keep--
			kept += len(now[keep])
		}
		now, size, fresh = append([]string{}, now[keep:]...), kept, 0
	}
	for tokens := sentences.FromString(text); tokens.Next(); {
		for _, part := range parts(tokens.Value()) {
			if size+len(part) > chunkBytes {
				flush()
			}
			if size+len(part) > chunkBytes { // the overlap leaves no room
				now, size = nil, 0
			}
			now = append(now, part)
			size, fresh = size+len(part), fresh+len(strings.TrimSpace(part))
		}
	}
	flush()
	return out
}

// parts cuts a sentence that fits into no chunk, between words where it can.
func parts(sentence string) (out []string) {
	for len(sentence) > chunkBytes {
		end := strings.LastIndexAny(sentence[:chunkBytes], " \t\n")
		if end <= 0 {
			for end = chunkBytes; !utf8.RuneStart(sentence[end]); {
				end--
			}
		}
		out, sentence = append(out, sentence[:end]), sentence[end:]
	}
	return append(out, sentence)
}
