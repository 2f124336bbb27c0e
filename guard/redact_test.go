package guard_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/helve-ai/helve/guard"
	"github.com/helve-ai/helve/schema"
)

func TestCommandsWithoutSecrets(t *testing.T) {
	r := guard.NewRedactor()
	r.Learn("a known value")
	for line, want := range map[string]string{
		`mysql --password=hunter2 -u x db`:                       `mysql --password=[redacted] -u x db`,
		`tool --token hunter2 --output a.txt`:                    `tool --token [redacted] --output a.txt`,
		`API_KEY=hunter2 npm run x`:                              `API_KEY=[redacted] npm run x`,
		`export DB_PASSWORD="hunter2 hunter2"; psql`:             `export DB_PASSWORD=[redacted]; psql`,
		`curl -H "X-Api-Key: hunter2" https://a.example`:         `curl -H "X-Api-Key: [redacted]" https://a.example`,
		`curl 'https://a.example/?q=1&access_token=hunter2#x'`:   `curl 'https://a.example/?q=1&access_token=[redacted]'`,
		`tool --header "X-Auth-Token: hunter2"`:                  `tool --header "X-Auth-Token: [redacted]"`,
		`echo a known value`:                                     `echo [redacted]`,
		`tool --token $TOKEN --password`:                         `tool --token $TOKEN --password`,
		`cat secret notes.txt; git log --author=x -- token.go`:   `cat secret notes.txt; git log --author=x -- token.go`,
		`grep -n "password" src/auth.go && go test -run=Token .`: `grep -n "password" src/auth.go && go test -run=Token .`,
	} {
		if got := r.Command(line); got != want {
			t.Errorf("%s\n  gave %s\n  want %s", line, got, want)
		}
	}
}

// Credentials under names that no schema declares, and beside names.
func TestArgumentsWithoutSecrets(t *testing.T) {
	r := guard.NewRedactor()
	for _, args := range []string{
		`{"env":[{"name":"DB_PASSWORD","value":"hunter2"}]}`, `{"headers":[{"key":"X-Api-Key","value":"hunter2"}]}`,
		`{"fields":[{"selector":"#password","text":"hunter2"}]}`, `{"signingKey":"hunter2"}`, `{"jwt":"hunter2"}`, `{"passcode":"hunter2"}`,
		`{"connectionString":"hunter2"}`, `{"seed_phrase":"hunter2"}`, `{"Passwort":"hunter2"}`, `{"mot_de_passe":"hunter2"}`, `{"contraseña":"hunter2"}`,
		`{"пароль":"hunter2"}`, `{"密码":"hunter2"}`, `{"パスワード":"hunter2"}`, `{"senha":"hunter2"}`, `{"비밀번호":"hunter2"}`,
		`{"to":"https://a.example/x?client_secret=hunter2&y=1"}`, `{"links":["https://a.example/?a%75th_token=hunter2"]}`, `{"run":"tool --password hunter2"}`,
	} {
		values := []schema.Value{{Pointer: "/run", Role: schema.Command}}
		if !strings.HasPrefix(args, `{"run"`) {
			values = nil
		}
		if got := string(r.Args(json.RawMessage(args), values)); strings.Contains(got, "hunter2") {
			t.Errorf("%s: %s", args, got)
		}
	}
	for _, args := range []string{
		`{"path":"config/secret","content":"kept"}`, `{"name":"Ann","value":"kept"}`, `{"key":"photos/cat.jpg","value":"kept"}`, `{"seed":"42"}`,
		`{"connection":"kept"}`, `{"url":"https://a.example/?q=kept&page=2"}`, `{"clave":"kept"}`,
	} {
		if got := string(r.Args(json.RawMessage(args), nil)); !strings.Contains(got, "kept") && got != args {
			t.Errorf("%s: %s", args, got)
		}
	}
}
