package schema

// number is a decimal that a float64 holds without confusion: two such
// decimals compare as their floats do.
type number struct {
	f     float64
	plain bool // without fraction or exponent
	whole bool // surely an integer
}

// maxExact is how many significant digits a float64 tells apart in any decimal.
const maxExact = 15

var powers = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// exact reads a well-formed JSON number. ok is false where a float64 might
// not do.
func exact(tok []byte) (n number, ok bool) {
	n.plain, n.whole = true, true
	i, neg := 0, false
	if tok[0] == '-' {
		i, neg = 1, true
	}
	var mant int64
	digits, scale := 0, 0
	for ; i < len(tok); i++ {
		c := tok[i]
		switch {
		case c == '.':
			n.plain = false
			continue
		case c == 'e' || c == 'E':
			return n, false
		}
		if mant != 0 || c != '0' {
			digits++
		}
		if digits > maxExact {
			return n, false
		}
		mant = mant*10 + int64(c-'0')
		if !n.plain {
			scale++
			n.whole = n.whole && c == '0'
		}
	}
	if scale >= len(powers) {
		return n, false
	}
	n.f = float64(mant) / powers[scale]
	if neg {
		n.f = -n.f
	}
	return n, true
}

// isWhole reports whether a well-formed JSON number is surely an integer.
func isWhole(tok []byte) bool {
	fraction := false
	for _, c := range tok {
		switch {
		case c == 'e' || c == 'E':
			return false
		case c == '.':
			fraction = true
		case fraction && c != '0':
			return false
		}
	}
	return true
}
