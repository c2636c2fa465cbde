package redact

import (
	"strings"
)

// separator returns the length of a space or hyphen that may stand in a number at a place; 0: none
// does.
func separator(text string, at int) int {
	for _, s := range []string{" ", "-", "\u00a0", "\u202f", "\u2011"} {
		if strings.HasPrefix(text[at:], s) {
			return len(s)
		}
	}
	return 0
}

// Digits of a card's number.
const (
	shortestCard = 13
	longestCard  = 19
)

// cards finds numbers of 13 to 19 digits, alone or in groups, that begin as cards do and have a
// valid check digit. The longest one counts, so that digits before or after it do not hide it.
// The digits of a fraction are none.
func cards(text string) (out [][]int) {
	for at := 0; at < len(text); at++ {
		if !digit(text[at]) || at > 0 && wordy(text[at-1]) || at > 1 && text[at-1] == '.' && digit(text[at-2]) {
			continue
		}
		end, sum := 0, ""
		for i := at; i < len(text) && len(sum) < longestCard; {
			if digit(text[i]) {
				sum += text[i : i+1]
				i++
				if len(sum) >= shortestCard && (i == len(text) || !wordy(text[i])) && issued(sum) && luhn(sum) {
					end = i
				}
				continue
			}
			n := separator(text, i)
			if n == 0 || i+n == len(text) || !digit(text[i+n]) {
				break
			}
			i += n
		}
		if end > 0 {
			out = append(out, []int{at, end})
			at = end - 1
		}
	}
	return out
}

// issued reports whether a number begins as those of cards: 2221 to 2720, and 3 to 6.
func issued(number string) bool {
	return number[0] >= '3' && number[0] <= '6' || number[:4] >= "2221" && number[:4] <= "2720"
}

// luhn reports whether the last digit is the check digit of the others.
func luhn(number string) bool {
	sum := 0
	for i := range len(number) {
		d := int(number[len(number)-1-i] - '0')
		if i%2 == 1 {
			d *= 2
		}
		sum += d/10 + d%10
	}
	return sum%10 == 0
}

// lengths are those of the account numbers of each country that has IBANs, in characters.
const lengths = "AD24AE23AL28AT20AZ28BA20BE16BG22BH22BI27BR29BY28CH21CR22CY28CZ24DE22DJ27DK18DO28EE20EG29ES24FI18FK18FO18FR27GB22GE22GI23GL18GR27GT28" +
	"HN28HR21HU28IE22IL23IQ23IS26IT27JO30KW30KZ20LB28LC32LI21LT20LU20LV21LY25MC27MD24ME22MK19MN20MR27MT31MU30NI28NL18NO15OM23PK24PL28PS29PT25QA29" +
	"RO24RS22RU33SA24SC31SD18SE24SI19SK24SM27SO23ST25SV28TL23TN24TR26UA29VA22VG24XK20YE30"

// length returns that of a country's account numbers; 0: it has none.
func length(country string) int {
	for i := 0; i < len(lengths); i += 4 {
		if lengths[i:i+2] == country {
			return int(lengths[i+2]-'0')*10 + int(lengths[i+3]-'0')
		}
	}
	return 0
}

// ibans finds account numbers with valid check digits, alone or in groups, of either case.
func ibans(text string) (out [][]int) {
	for at := 0; at+15 <= len(text); at++ {
		if !letter(text[at]) || !letter(text[at+1]) || !digit(text[at+2]) || at > 0 && wordy(text[at-1]) {
			continue
		}
		left, number, i := length(strings.ToUpper(text[at:at+2])), "", at
		for left > 0 && i < len(text) {
			if n := separator(text, i); n > 0 {
				i += n
				continue
			}
			if !digit(text[i]) && !letter(text[i]) {
				break
			}
			number += strings.ToUpper(text[i : i+1])
			i, left = i+1, left-1
		}
		if number != "" && left == 0 && (i == len(text) || !wordy(text[i])) && mod97(number) {
			out = append(out, []int{at, i})
			at = i - 1
		}
	}
	return out
}

// mod97 reports whether the check digits of an account number are valid.
func mod97(number string) bool {
	rest := 0
	for _, c := range number[4:] + number[:4] {
		if c >= 'A' {
			rest = (rest*100 + int(c-'A') + 10) % 97
		} else {
			rest = (rest*10 + int(c-'0')) % 97
		}
	}
	return rest == 1
}
