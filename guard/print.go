package guard

import (
	"bytes"
	"encoding/json"
	"hash/maphash"
	"math/bits"
	"strconv"
	"strings"
)

// printSeed keeps fingerprints from being guessed; they are good within the
// process only.
var printSeed = maphash.MakeSeed()

// fingerprint returns a hash of a JSON document that depends on its value
// alone: not on the order of keys, on white space, escapes, or the way in
// which numbers are written. It allocates nothing but for strings with escapes.
func fingerprint(doc []byte) uint64 {
	h, _ := printOf(doc, skipBlank(doc, 0))
	return h
}

// printOf returns the hash of the value that begins at i, and where it ends.
func printOf(doc []byte, i int) (uint64, int) {
	if i >= len(doc) {
		return 0, i
	}
	switch doc[i] {
	case '{':
		return printObject(doc, i+1)
	case '[':
		h := uint64('[')
		for i = skipBlank(doc, i+1); i < len(doc) && doc[i] != ']'; {
			var v uint64
			v, i = printOf(doc, i)
			h = mix(h, v)
			i = skipComma(doc, i)
		}
		return h, i + 1
	case '"':
		return printString(doc, i)
	case 't', 'f', 'n':
		end := i
		for end < len(doc) && 'a' <= doc[end] && doc[end] <= 'z' {
			end++
		}
		return maphash.Bytes(printSeed, doc[i:end]) ^ 1, end
	}
	return printNumber(doc, i)
}

// printObject returns the sum of the hashes of its members, which is the same
// in any order.
func printObject(doc []byte, i int) (uint64, int) {
	sum := uint64('{')
	for i = skipBlank(doc, i); i < len(doc) && doc[i] != '}'; {
		key, end := printString(doc, i)
		i = skipBlank(doc, end)
		if i < len(doc) && doc[i] == ':' {
			i = skipBlank(doc, i+1)
		}
		value, end := printOf(doc, i)
		sum += mix(key, value)
		i = skipComma(doc, end)
	}
	return sum, i + 1
}

func printString(doc []byte, i int) (uint64, int) {
	end, plain := i+1, true
	for end < len(doc) && doc[end] != '"' {
		if doc[end] == '\\' {
			plain = false
			end++
		}
		end++
	}
	end = min(end+1, len(doc))
	if plain && end-1 > i {
		return maphash.Bytes(printSeed, doc[i+1:end-1]), end
	}
	var s string
	if json.Unmarshal(doc[i:end], &s) != nil {
		return maphash.Bytes(printSeed, doc[i:end]), end
	}
	return maphash.String(printSeed, s), end
}

// printNumber hashes the digits between the first and the last that are not
// zero, and the exponent of the latter: 1, 1.0 and 10e-1 are the same.
func printNumber(doc []byte, i int) (uint64, int) {
	digits, exponent, negative, end := number(doc, i)
	if len(digits) == 0 || end == i {
		return uint64('0'), max(end, i+1)
	}
	h := uint64('1')
	if negative {
		h = uint64('-')
	}
	zeros := 0
	for _, d := range digits {
		switch {
		case d == '0':
			zeros++
		case d != '.':
			for ; zeros > 0; zeros-- {
				h = mix(h, '0')
			}
			h = mix(h, uint64(d))
		}
	}
	return mix(h, uint64(exponent+zeros)), end
}

// number reads the number at i: its digits from the first that is not zero on
// (a point may be among them), the exponent of the last digit, and its end.
// Zero has no digits.
func number(doc []byte, i int) (digits []byte, exponent int, negative bool, end int) {
	if i < len(doc) && doc[i] == '-' {
		negative = true
		i++
	}
	start, point, zero := i, false, true
	for ; i < len(doc) && (doc[i] == '.' || '0' <= doc[i] && doc[i] <= '9'); i++ {
		switch {
		case doc[i] == '.':
			point = true
		case point:
			exponent--
		}
		if zero && doc[i] != '0' && doc[i] != '.' {
			zero, start = false, i
		}
	}
	if !zero {
		digits = doc[start:i]
	}
	if i < len(doc) && (doc[i] == 'e' || doc[i] == 'E') {
		sign, n := 1, 0
		for i++; i < len(doc); i++ {
			switch c := doc[i]; {
			case c == '-':
				sign = -1
			case c == '+':
			case '0' <= c && c <= '9':
				n = min(n*10+int(c-'0'), 1<<30)
			default:
				return digits, exponent + sign*n, negative, i
			}
		}
		exponent += sign * n
	}
	return digits, exponent, negative, i
}

func skipBlank(doc []byte, i int) int {
	for i < len(doc) && (doc[i] == ' ' || doc[i] == '\n' || doc[i] == '\t' || doc[i] == '\r') {
		i++
	}
	return i
}

func skipComma(doc []byte, i int) int {
	i = skipBlank(doc, i)
	if i < len(doc) && doc[i] == ',' {
		i = skipBlank(doc, i+1)
	}
	return i
}

// mix combines two hashes, in this order, by a wide multiplication.
func mix(a, b uint64) uint64 {
	high, low := bits.Mul64(a^0x9e3779b97f4a7c15, b^0xd6e8feb86659fd93)
	return high ^ low + 0x632be59bd9b4e019
}

// canonical returns a text that two JSON documents share if their values are
// the same: keys in order, numbers in one notation. It is for keys that
// outlive the process, and need not be the shortest.
func canonical(doc []byte) (string, error) {
	v, err := decodeAny(doc)
	if err != nil {
		return "", err
	}
	out, err := json.Marshal(oneNotation(v))
	return string(out), err
}

// decodeAny reads a document, and keeps its numbers as they are written.
func decodeAny(doc []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}

func oneNotation(v any) any {
	switch v := v.(type) {
	case json.Number:
		digits, exponent, negative, _ := number([]byte(v), 0)
		if len(digits) == 0 {
			return json.Number("0")
		}
		plain := strings.ReplaceAll(string(digits), ".", "")
		short := strings.TrimRight(plain, "0")
		if exponent += len(plain) - len(short); exponent != 0 {
			short += "e" + strconv.Itoa(exponent)
		}
		if negative {
			short = "-" + short
		}
		return json.Number(short)
	case []any:
		for i := range v {
			v[i] = oneNotation(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = oneNotation(v[k])
		}
	}
	return v
}
