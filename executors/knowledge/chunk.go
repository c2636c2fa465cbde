package knowledge

import (
	"strings"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/sentences"
)

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
