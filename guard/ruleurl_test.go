package guard

import "testing"

func TestMatchURL(t *testing.T) {
	const public, evil = "https://api.example.com/public/**", "https://evil.example.com/**"
	for _, tc := range []struct {
		pattern, url string
		permits      bool // a rule that grants it holds
		restricts    bool // a rule that denies it holds
	}{
		{public, "https://api.example.com/public/a", true, true},
		{public, "https://API.Example.com:443/public/a?b=/../c#d", true, true},
		{public, "https://api.example.com/public/b/../a", true, true},
		{public, "https://api.example.com/%70ublic/a%20b", true, true},
		{public, "https://api.example.com/public/../admin", false, false},
		{public, "https://api.example.com/public/%2e%2E/admin", false, false},
		{public, "https://api.example.com/public/..", false, false},
		{public, "https://api.example.com/public/..%2fadmin", false, true},
		{public, "https://api.example.com/public/a%2F..%5C..%2Fadmin", false, true},
		{public, "https://api.example.com/public/..;x=y/admin", false, true},
		{public, "https://api.example.com/public//../admin", false, true},
		{public, "https://api.example.com//public/a", false, true},
		{public, "https://api.example.com/admin/../public/a", true, true},
		{public, "https://api.example.com:8443/public/a", false, false},
		{public, "http://api.example.com/public/a", false, false},
		{public, "https://api.example.com/x?/public/a", false, false},
		{evil, "https://evil.example.com", true, true},
		{evil, "https://evil.example.com:443/x", true, true},
		{evil, "https://evil.example.com?x=1", true, true},
		{evil, "https://evil.example.com#x", true, true},
		{evil, "https://other.example.com/..%2f", false, false},
		{"https://evil.example.com:443/**", "https://evil.example.com/a", true, true},
		{"https://evil.example.com", "https://evil.example.com/", true, true},
		{"*://evil.example.com*", "http://evil.example.com/?x", true, true},
		{"https://bücher.example/**", "https://xn--bcher-kva.example/a", true, true},
		{"https://xn--bcher-kva.example/**", "https://bücher.example/a", true, true},
		{"https://example.com/a%c3%bc", "https://example.com/aü", true, true},
		{`https://\[2606:4700::1\]/**`, "https://[2606:4700:0::1]/a", true, true},
	} {
		for q, want := range map[quantifier]bool{everyValue: tc.permits, anyValue: tc.restricts} {
			if got, err := matchURL(tc.pattern, tc.url, q); err != nil || got != want {
				t.Errorf("%s, %s, every value %v: %v %v", tc.pattern, tc.url, q == everyValue, got, err)
			}
		}
	}
}
