package model

import "strings"

// pythonHelpers are the functions that extraction scripts call; a script has
// only those that it uses. A helper comes after those that use it.
var pythonHelpers = []struct{ name, def string }{
	// walk goes as far as the data does: a response may come without the
	// envelope that its schema declares, or with its records already apart.
	{"walk", `def walk(value, *path):
    for name in path:
        if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict) and name in value[0]:
            value = value[0]
        if isinstance(value, dict) and name in value:
            value = value[name]
    return value
`},
	{"get", `def get(row, *path):
    for name in path:
        row = row.get(name) if isinstance(row, dict) else None
    return row
`},
	{"mentions", `def mentions(value, words):
    text = "".join(c if c.isalnum() else " " for c in plain(value)).split()
    n = len(words)
    return any(text[i:i + n] == words for i in range(len(text) - n + 1))
`},
	{"plain", `def plain(value):
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).casefold()
`},
	{"is_number", `def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)
`},
	// day is the date in UTC of a time: of a text its first ten characters, of a
	// number of which so many make a second the day since 1970.
	{"day", `def day(value, unit):
    if isinstance(value, str):
        return value[:10]
    start = datetime.datetime(1970, 1, 1)
    return (start + datetime.timedelta(seconds=value / unit)).date().isoformat()
`},
}

// withHelpers puts imports and helpers before a program as far as it needs them.
func withHelpers(body string) string {
	defs := ""
	for _, h := range pythonHelpers {
		if strings.Contains(defs+body, h.name+"(") {
			defs += "\n\n" + h.def
		}
	}
	head := ""
	for _, module := range []string{"datetime", "json", "math"} {
		if strings.Contains(defs+body, module+".") {
			head += "import " + module + "\n"
		}
	}
	return head + defs + "\n\n" + body
}
