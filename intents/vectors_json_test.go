package intents

import (
	"strings"
	"unicode/utf16"
)

// jsonVectors are texts that are not strict I-JSON (RFC 7493).
func jsonVectors(s *vectorSet) {
	p := plainIntent()
	n := func(with string) string { return replaced(p, `"n":1`, `"n":`+with) }
	team := func(with string) string { return replaced(p, "ä", with) }
	for _, v := range []struct{ name, doc, raw string }{
		{"json-empty", "nothing", ""},
		{"json-blank", "white space only", " \n"},
		{"json-cut", "the end is missing", p[:len(p)-1]},
		{"json-cut-string", "the end is missing, within a string", p[:len(p)/2]},
		{"json-two-values", "a second value follows", p + "{}"},
		{"json-two-intents", "an intent follows", p + p},
		{"json-byte-order-mark", "a byte order mark is no JSON", "\ufeff" + p},
		{"json-array", "not an object", "[" + p + "]"},
		{"json-string", "not an object", `"intent"`},
		{"json-null", "not an object", `null`},
		{"json-number", "not an object", `1`},
		{"json-comment", "JSON has no comments", p + "/**/"},
		{"json-comment-line", "JSON has no comments", replaced(p, `"version"`, "//\n\"version\"")},
		{"json-single-quotes", "JSON has no single quotes", replaced(p, `"version"`, `'version'`)},
		{"json-name-bare", "a name is a string", replaced(p, `"version"`, `version`)},
		{"json-name-number", "a name is a string", n(`{1:2}`)},
		{"json-comma-object", "no comma at the end", n(`{"a":1,}`)},
		{"json-comma-array", "no comma at the end", n(`[1,]`)},
		{"json-comma-first", "no comma at the start", n(`[,1]`)},
		{"json-comma-missing", "values are separated", n(`[1 2]`)},
		{"json-colon-missing", "a name has a value", n(`{"a" 1}`)},
		{"json-value-missing", "a name has a value", n(`{"a":}`)},
		{"json-brackets-cross", "brackets nest", n(`[{]}`)},
		{"json-true-upper", "literals are lower case", n(`True`)},
		{"json-undefined", "no such literal", n(`undefined`)},
		{"json-nul-after", "a NUL byte follows", p + "\x00"},
		{"json-space-no-break", "U+00A0 is no white space of JSON", p + "\u00a0"},
		{"json-space-vertical", "U+000B is no white space of JSON", p + "\v"},
		{"json-space-form-feed", "U+000C is no white space of JSON", p + "\f"},
		{"json-escape-unknown", `\x41`, team(`\x41`)},
		{"json-escape-single-quote", `\'`, team(`\'`)},
		{"json-escape-short", `\u with three digits`, team(`\u12`) + " "},
		{"json-escape-upper-u", `\U`, team(`\U00e4`)},
		{"json-escape-no-hex", `\u with other characters`, team(`\u00g4`)},
		{"json-control-tab", "a tab within a string", team("\t")},
		{"json-control-line-feed", "a line feed within a string", team("\n")},
		{"json-control-nul", "a NUL within a string", team("\x00")},
		{"json-utf16", "UTF-16, big endian", bigEndian(p)},
		{"utf8-latin1", "the text is not UTF-8", team("\xe4")},
		{"utf8-overlong", "an overlong encoding", team("\xc1\xa4")},
		{"utf8-overlong-slash", "an overlong encoding of three bytes", team("\xe0\x80\xaf")},
		{"utf8-surrogate", "a surrogate encoded in UTF-8 (CESU-8)", team("\xed\xa0\xbd\xed\xb8\x80")},
		{"utf8-beyond", "beyond U+10FFFF", team("\xf4\x90\x80\x80")},
		{"utf8-cut", "a character that is cut", team("\xf0\x9f\x98")},
		{"utf8-continuation", "a continuation byte alone", team("\x80")},
		{"utf8-ff", "a byte that never occurs", team("\xff")},
		{"utf8-in-name", "not UTF-8, within a name", replaced(p, `"n":1`, "\"\xe4\":1")},
		{"surrogate-high-alone", "a lone high surrogate is no character", team(`\ud83d`)},
		{"surrogate-low-alone", "a lone low surrogate is no character", team(`\ude00`)},
		{"surrogate-swapped", "low before high", team(`\ude00\ud83d`)},
		{"surrogate-high-twice", "two high ones", team(`\ud83d\ud83d`)},
		{"surrogate-high-letter", "high, then a letter", team(`\ud83d\u0041`)},
		{"surrogate-in-name", "a lone surrogate in a name", replaced(p, `"n":1`, `"\udead":1`)},
		{"duplicate-member", "a name stands twice, the same value", replaced(p, `"version":"1.0"`, `"version":"1.0","version":"1.0"`)},
		{"duplicate-in-args", "a name stands twice within args", replaced(p, `"n":1`, `"n":1,"n":2`)},
		{"duplicate-escaped", "a name stands twice in two spellings", replaced(p, `"n":1`, `"n":1,"\u006e":1`)},
		{"duplicate-apart", "a name stands twice, others between", replaced(p, `"n":1`, `"n":1,"m":2,"n":1`)},
		{"duplicate-empty", "the empty name twice", n(`{"":1,"":1}`)},
		{"duplicate-in-array", "a name stands twice in an object of an array", n(`[{"a":1,"a":1}]`)},
		{"duplicate-intent", "two intents", replaced(p, `"intent":`, `"intent":{"args":{},"type":"plan.get"},"intent":`)},
		{"duplicate-sig", "two signatures", replaced(p, `"sig":`, `"sig":"","sig":`)},
		{"duplicate-proto", "a name that some languages treat apart, twice", n(`{"__proto__":1,"__proto__":1}`)},
	} {
		s.add(v.name, v.doc, v.raw, SchemaInvalid)
	}
	s.body("ok-proto", "a name that some languages treat apart", put(object{"__proto__": object{"admin": true}, "constructor": 1, "toString": 2}, "intent", "args"), OK)
}

func bigEndian(s string) string {
	var b strings.Builder
	for _, u := range utf16.Encode([]rune(s)) {
		b.WriteByte(byte(u >> 8))
		b.WriteByte(byte(u))
	}
	return b.String()
}

// numberVectors are numbers at the corners of RFC 8785 §3.2.2.3.
func numberVectors(s *vectorSet) {
	p := plainIntent()
	n := func(with string) string { return replaced(p, `"n":1`, `"n":`+with) }
	s.add("ok-number-spelling", "1.0 is 1: numbers are compared by value", n("1.0"), OK)
	s.add("ok-number-exponent", "10e-1 is 1", n("10e-1"), OK)
	s.add("ok-number-exponent-plus", "0.1E+1 is 1", n("0.1E+1"), OK)
	s.add("ok-number-zeros", "1.000000000000000000000000000000000 is 1", n("1."+strings.Repeat("0", 33)), OK)
	s.body("ok-numbers", "each as ECMAScript prints it", func(o object) {
		lookup(o, "intent", "args", "input")["n"] = []float64{
			0, -1, 0.1, 1e20, 1e21, 1e-6, 1e-7, 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308,
			9007199254740991, -9007199254740992, 333333333.3333333, 123456789012345680000,
		}
	}, OK)
	numbers := signed(vTask, envelopeOf(put([]float64{0, 0.002, 1e23, 4.5, 9007199254740992}, "intent", "args", "input", "n")))
	s.add("ok-number-respelt", "five numbers, none as ECMAScript prints it", replaced(numbers, "[0,0.002,1e+23,4.5,9007199254740992]", "[0e99,2E-3,100000000000000000000000,4.50,9007199254740992.0]"), OK)
	for _, v := range []struct{ name, doc, with string }{
		{"beyond-double", "2^53+1 is no double: RFC 8785 would sign another number", "9007199254740993"},
		{"beyond-double-negative", "-(2^53+1)", "-9007199254740993"},
		{"beyond-double-long", "20 digits that are no double", "12345678901234567890"},
		{"beyond-double-exponent", "2^53+1 in other digits", "9007199254740.993e3"},
		{"minus-zero", "RFC 8785 would write 0", "-0"},
		{"minus-zero-point", "RFC 8785 would write 0", "-0.0"},
		{"minus-zero-exponent", "RFC 8785 would write 0", "-0e5"},
		{"underflow", "RFC 8785 would write 0", "1e-400"},
		{"underflow-near", "below half of the smallest double", "2e-324"},
		{"denormal-inexact", "RFC 8785 would write 5e-324", "4.9e-324"},
		{"overflow", "larger than any double", "1e400"},
		{"overflow-negative", "less than any double", "-1e400"},
		{"overflow-near", "rounds to infinity", "1.7976931348623159e308"},
		{"too-precise", "more digits than a double has", "0.10000000000000000555"},
		{"too-precise-decimal", "the exact value of the double 0.1 is not its shortest form", "0.1000000000000000055511151231257827021181583404541015625"},
		{"shortest", "RFC 8785 would write 333333333.3333333", "333333333.33333329"},
		{"subnormal-border", "RFC 8785 would write 2.225073858507201e-308", "2.2250738585072011e-308"},
		{"leading-zero", "JSON has no leading zeros", "01"},
		{"leading-zero-negative", "JSON has no leading zeros", "-01"},
		{"leading-point", "a digit stands before the point", ".5"},
		{"trailing-point", "a digit stands after the point", "1."},
		{"point-exponent", "a digit stands after the point", "1.e1"},
		{"exponent-empty", "an exponent has digits", "1e"},
		{"exponent-sign", "an exponent has digits", "1e+"},
		{"exponent-fraction", "an exponent is whole", "1e1.5"},
		{"plus", "no plus in front", "+1"},
		{"minus-alone", "a digit follows the minus", "-"},
		{"minus-twice", "one minus", "--1"},
		{"hexadecimal", "decimal only", "0x10"},
		{"underscore", "digits only", "1_000"},
		{"nan", "JSON has no NaN", "NaN"},
		{"infinity", "JSON has no Infinity", "-Infinity"},
		{"arabic-digits", "ASCII digits only", "\u0661"},
	} {
		s.add("number-"+v.name, v.doc, n(v.with), SchemaInvalid)
	}
}

// limitVectors are at a limit of size or depth and one past it.
func limitVectors(s *vectorSet) {
	p := plainIntent()
	n := func(with string) string { return replaced(p, `"n":1`, `"n":`+with) }
	arrays := func(k int) string { return strings.Repeat("[", k) + strings.Repeat("]", k) }
	objects := func(k int) string { return strings.Repeat(`{"a":`, k) + "1" + strings.Repeat("}", k) }

	s.add("ok-size-received", "49152 bytes, most of them white space", p+strings.Repeat(" ", MaxSize-len(p)), OK)
	s.add("size-received", "one byte more than 49152, in white space", p+strings.Repeat(" ", MaxSize-len(p)+1), PayloadTooLarge)
	s.add("size-received-noise", "one byte more than 49152: nothing is read", strings.Repeat("[", MaxSize+1), PayloadTooLarge)
	text := func(k int) string {
		return signed(vTask, envelopeOf(put(object{"s": strings.Repeat("x", k)}, "intent", "args")))
	}
	room := MaxSize - len(text(0))
	s.add("ok-size-canonical", "49152 bytes, canonical", text(room), OK)
	s.add("size-canonical-received", "49153 bytes, canonical", text(room+1), PayloadTooLarge)

	// 1e20 is 4 bytes as received and 21 in canonical form.
	list := func(k, pad int) string {
		numbers := make([]float64, k)
		for i := range numbers {
			numbers[i] = 1e20
		}
		return signed(vTask, envelopeOf(put(object{"n": numbers, "s": strings.Repeat("x", pad)}, "intent", "args")))
	}
	count := (MaxSize - len(list(0, 0))) / 22
	pad := MaxSize - len(list(count, 0))
	short := func(k, pad int) string { return strings.ReplaceAll(list(k, pad), "100000000000000000000", "1e20") }
	s.add("ok-size-grown", "short as received, 49152 bytes in canonical form", short(count, pad), OK)
	s.add("size-grown", "short as received, 49153 bytes in canonical form", short(count, pad+1), PayloadTooLarge)
	s.add("size-canonical", "short as received, far larger than 49152 bytes in canonical form", n(`[`+strings.Repeat("1e20,", 6000)+`1]`), PayloadTooLarge)

	deep := func(v any, k int) any {
		for range k {
			v = []any{v}
		}
		return v
	}
	s.body("ok-depth-arrays", "32 levels", put(deep([]any{}, 27), "intent", "args", "input", "n"), OK)
	s.add("depth", "33 levels", n(arrays(29)), PayloadTooLarge)
	s.add("depth-objects", "33 levels of objects", n(objects(29)), PayloadTooLarge)
	s.add("depth-mixed", "33 levels, arrays and objects", n(arrays(14)[:14]+objects(15)+arrays(14)[14:]), PayloadTooLarge)
	s.add("depth-open", "20000 brackets that nobody closes", strings.Repeat("[", 20000), PayloadTooLarge)
	s.body("ok-depth-text", "brackets within a string are no depth", put(strings.Repeat("[{", 40), "intent", "args", "input", "n"), OK)
}
