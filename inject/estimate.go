package inject

import "unicode/utf8"

// Estimate returns how many tokens a text costs at most, near enough: it is
// calibrated so that the tokenisers in use (cl100k, o200k) seldom count more.
// Identifiers and prose come to about three bytes a token, other scripts to
// somewhat more than one token a character.
func Estimate(s string) int {
	ascii, other := 0, 0
	for _, r := range s {
		if r < utf8.RuneSelf {
			ascii++
		} else {
			other++
		}
	}
	return (ascii+2)/3 + (other*5+3)/4
}

// Clip returns as much of s as costs at most that many tokens, with an
// ellipsis if something was left out.
func Clip(s string, tokens int) string {
	if Estimate(s) <= tokens {
		return s
	}
	ascii, other := 0, 0
	for i, r := range s {
		if r < utf8.RuneSelf {
			ascii++
		} else {
			other++
		}
		if (ascii+2)/3+(other*5+3)/4+2 > tokens {
			if i == 0 {
				return ""
			}
			return s[:i] + "…"
		}
	}
	return s
}
