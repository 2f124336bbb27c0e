package guard

import (
	"fmt"
	"math/big"
	"regexp"
	"strings"
)

// Money is an amount in millionths of a currency's unit. The zero Money is nothing.
type Money struct {
	Micros   int64
	Currency string // three capital letters
}

var money = regexp.MustCompile(`^(\d{1,9}(?:\.\d{1,6})?) ([A-Z]{3})$`)

// ParseMoney reads an amount such as "0.05 USD".
func ParseMoney(s string) (Money, error) {
	m := money.FindStringSubmatch(strings.TrimSpace(s))
	if m == nil {
		return Money{}, fmt.Errorf("%q is no amount; write it as in 0.05 USD", s)
	}
	r, _ := new(big.Rat).SetString(m[1])
	return Money{new(big.Int).Div(new(big.Int).Mul(r.Num(), big.NewInt(1e6)), r.Denom()).Int64(), m[2]}, nil
}

// String is what ParseMoney reads; "" for nothing.
func (m Money) String() string {
	if m.Micros == 0 {
		return ""
	}
	s := fmt.Sprintf("%d.%06d", m.Micros/1e6, m.Micros%1e6)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".") + " " + m.Currency
}
