package model

import "strings"

// The lexicon of the offline model: ordinary English that says how a question
// is put (count, sort, compare, where, when), never what it is about. Entries
// are in lower case; sets of stems are built with [stem] so that both sides of
// a comparison went through the same function.

// numbers are the number words of everyday questions; "a" and "one" are left
// out because they are articles and pronouns more often than counts.
var numbers = map[string]float64{
	"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
	"eleven": 11, "twelve": 12, "fifteen": 15, "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "hundred": 100, "dozen": 12,
}

// superlative is what an extreme asks for: the base of the adjective, whether
// the small end is wanted, and whether the word names no dimension of its own
// ("highest" what?), so that the next noun or the measure of the data decides.
type superlative struct {
	base    string
	asc     bool
	generic bool
	time    bool
}

var superlatives = map[string]superlative{
	"highest": {"high", false, true, false}, "largest": {"large", false, true, false}, "biggest": {"big", false, true, false},
	"greatest": {"great", false, true, false}, "most": {"much", false, true, false}, "top": {"top", false, true, false},
	"best": {"good", false, true, false}, "maximum": {"high", false, true, false},
	"lowest": {"low", true, true, false}, "smallest": {"small", true, true, false}, "least": {"little", true, true, false},
	"fewest": {"few", true, true, false}, "bottom": {"low", true, true, false}, "minimum": {"low", true, true, false},
	"worst": {"bad", true, true, false}, "tiniest": {"small", true, true, false},
	"cheapest": {"price", true, false, false}, "dearest": {"price", false, false, false}, "priciest": {"price", false, false, false},
	"shortest": {"long", true, false, false}, "weakest": {"strong", true, false, false}, "lightest": {"heavy", true, false, false},
	"slowest": {"fast", true, false, false}, "youngest": {"old", true, false, false}, "nearest": {"far", true, false, false},
	"closest": {"far", true, false, false}, "coldest": {"hot", true, false, false}, "shallowest": {"deep", true, false, false},
	"newest": {"time", false, false, true}, "latest": {"time", false, false, true},
	"oldest": {"old", false, false, true}, "earliest": {"time", true, false, true},
}

// notSuperlative are words that only look like one.
var notSuperlative = set("west east best test rest guest forest interest request harvest protest contest honest modest quest nest chest crest priest invest digest suggest vest pest latest invest arrest attest conquest manifest")

// dimensions lead from an adjective to the nouns that name what it measures.
var dimensions = stemmed(map[string]string{
	"strong": "strength force power", "long": "length duration", "wide": "width", "high": "height", "tall": "height",
	"deep": "depth", "heavy": "weight mass", "old": "age", "fast": "speed velocity", "far": "distance", "hot": "temperature",
	"expensive": "price cost amount total value", "price": "price cost amount total value", "large": "size magnitude amount quantity value total volume",
	"big": "size magnitude amount quantity value total volume", "small": "size magnitude amount quantity value total volume",
	"great": "size magnitude amount quantity value total volume", "much": "amount quantity value total",
	"good": "score rating", "bad": "score rating", "popular": "popularity views", "recent": "time date",
	"time": "time date day timestamp", "wealthy": "wealth", "loud": "volume loudness", "bright": "brightness",
})

// synonyms are groups of nouns that name the same thing in any data.
var synonyms = groups(
	"type kind category sort class", "amount sum value total", "id identifier", "price cost", "state status condition",
	"place location position", "date day", "name title label", "size quantity", "description text summary", "email mail",
)

var (
	// placeWords, timeWords and nameWords mark fields that answer where, when and who.
	placeWords = stems("where place location city town village country region state district area address site continent")
	timeWords  = stems("when time date day timestamp moment month year at")
	nameWords  = stems("name title label headline called place subject")
	sizeWords  = stems("size magnitude amount quantity value total volume price cost score")
	idWords    = stems("id identifier uuid key code")

	// stop are words that carry no content of their own in a question.
	stop = stems(`a an the this that these those it its they them their there he she his her we us our you your i me my
		is are was were be been being am do does did done have has had having will would can could should may might must shall
		of in on at near around to from for with without by as into onto within among between during about per and or but nor not no so if than then
		which what who whom whose where when how why many much all any some every each both other more most less few
		please kindly just only also too very really exactly currently now ever yet still already overall altogether together out up down off over under
		s t re ve ll d m n't same such own one ones here respectively e g ie eg etc vs
		happen occur exist record see found make take know`)

	// asks are the verbs and nouns by which a question asks for data or for an arrangement of it.
	asks = stems(`list show give tell find get fetch display print return report name look want need like let query retrieve identify determine compute calculate
		count number total sum average mean median combined top bottom first last rank ranking sort sorted arrange arranged group grouped
		ascending descending alphabetical alphabetically highest lowest answer question table row result entry record item data detail information info
		see pick select choose provide check compare respective value extract read use work`)

	// shaping are the words of tools that arrange rows rather than find them.
	shaping = stems("rank ranking sort sorting arrange")

	// tools are words of skill names that say how, not what.
	tools = stems("list get feed find all search fetch read data for by of the a in lookup query skill tool api service load index show")

	calendar = set("monday tuesday wednesday thursday friday saturday sunday january february march april may june july august september october november december")
	currency = stems("euro eur dollar usd pound gbp chf franc yen")
)

func set(list string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(list) {
		m[w] = true
	}
	return m
}

func stems(list string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(list) {
		m[stem(w)] = true
	}
	return m
}

func stemmed(in map[string]string) map[string]map[string]bool {
	out := map[string]map[string]bool{}
	for k, list := range in {
		if list != "" {
			out[stem(k)] = stems(list)
		}
	}
	return out
}

func groups(lists ...string) map[string]int {
	m := map[string]int{}
	for i, list := range lists {
		for w := range stems(list) {
			m[w] = i + 1
		}
	}
	return m
}
