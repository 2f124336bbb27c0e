package app

import (
	"errors"
	"strings"
	"testing"
)

func TestExpandSecrets(t *testing.T) {
	secret := func(name string) (string, error) {
		if v, ok := map[string]string{"A": "one", "b/c.d-e": "{{secret.A}}"}[name]; ok {
			return v, nil
		}
		return "", errors.New("is not set")
	}
	for text, want := range map[string]string{
		"":                                   "",
		"plain {{x}} {{event.y}}":            "plain {{x}} {{event.y}}",
		"{{secret.A}}":                       "one",
		"a{{ secret.A }}b{{secret.A}}c":      "aonebonec",
		"{{secret.b/c.d-e}}{{secret.A}}":     "{{secret.A}}one", // a value is not read again
		"{{secret.}} {{secret.A ?? x}} {{se": "{{secret.}} {{secret.A ?? x}} {{se",
	} {
		if got, err := expandSecrets(text, secret); err != nil || got != want {
			t.Errorf("%q gives %q, %v; want %q", text, got, err, want)
		}
	}
	for _, ask := range []func(string) (string, error){secret, nil} {
		if _, err := expandSecrets("{{secret.NONE}}", ask); err == nil || !strings.Contains(err.Error(), "secret NONE") {
			t.Errorf("got %v", err)
		}
	}
}

func TestParentPath(t *testing.T) {
	for path, want := range map[string]string{"a": "", "a.b": "a", "a[0]": "a", "a[0].b": "a[0]", `a["x.y"]`: "a", `a["[0]"].b`: `a["[0]"]`, `["x"]`: ""} {
		if got := parentPath(path); got != want {
			t.Errorf("%s is in %q, want %q", path, got, want)
		}
	}
}

// Each line of the table of what is not supported names a key that there is,
// so that none outlives its key.
func TestUnsupportedKeysExist(t *testing.T) {
	for _, u := range unsupported {
		if !strings.Contains(string(JSONSchema(nil)), `"`+u.pattern[strings.LastIndex(u.pattern, ".")+1:]+`": {`) {
			t.Errorf("there is no key %s", u.pattern)
		}
	}
}
