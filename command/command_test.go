package command_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/helve-ai/helve/command"
)

func TestParse(t *testing.T) {
	tests := []struct {
		text string
		want []command.Part
	}{
		{"ls -la", []command.Part{{Argv: []string{"ls", "-la"}}}},
		{"a | b && c || d; e", []command.Part{
			{Argv: []string{"a"}}, {Argv: []string{"b"}, Joined: "|"}, {Argv: []string{"c"}, Joined: "&&"},
			{Argv: []string{"d"}, Joined: "||"}, {Argv: []string{"e"}, Joined: ";"}}},
		{"a\nb", []command.Part{{Argv: []string{"a"}}, {Argv: []string{"b"}, Joined: ";"}}},
		{`echo "a b"'c d'e\ f`, []command.Part{{Argv: []string{"echo", "a bc de f"}}}},
		{`echo "\$x \n \\ \""`, []command.Part{{Argv: []string{"echo", `$x \n \ "`}}}},
		{`r""m x`, []command.Part{{Argv: []string{"rm", "x"}}}},
		{`grep '$HOME | ; & > <' f`, []command.Part{{Argv: []string{"grep", "$HOME | ; & > <", "f"}}}},
		{`grep "x$" f`, []command.Part{{Argv: []string{"grep", "x$", "f"}}}},
		{`git show HEAD~1 HEAD@{1} a..b`, []command.Part{{Argv: []string{"git", "show", "HEAD~1", "HEAD@{1}", "a..b"}}}},
		{`wc *.go "*"a?`, []command.Part{{Argv: []string{"wc", "*.go", "*a?"},
			Globs: []command.Glob{{Arg: 1, Pattern: "*.go"}, {Arg: 2, Pattern: `\*a?`}}}}},
		{`find . ! -name '*.go' \( -type f \)`, []command.Part{{Argv: []string{"find", ".", "!", "-name", "*.go", "(", "-type", "f", ")"}}}},
		{`[ a != b ]`, []command.Part{{Argv: []string{"[", "a", "!=", "b", "]"}}}},
	}
	for _, test := range tests {
		line, err := command.Parse(test.text)
		if err != nil {
			t.Errorf("%s: %v", test.text, err)
			continue
		}
		if diff := cmp.Diff(test.want, line.Parts); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.text, diff)
		}
		again, err := command.Parse(line.String())
		if err != nil {
			t.Errorf("%s: written as %s: %v", test.text, line, err)
		} else if diff := cmp.Diff(line.Parts, again.Parts); diff != "" {
			t.Errorf("%s: written as %s, it reads otherwise (-first +again):\n%s", test.text, line, diff)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	tests := []struct{ text, construct string }{
		{"", "empty command"}, {"  \n ", "empty command"}, {"'' x", "program"},
		{"ls $X", "variable expansion"}, {"ls ${X}", "variable expansion"}, {`ls "a $X"`, "variable expansion"}, {"$X", "variable expansion"},
		{"ls $(x)", "command substitution"}, {"ls `x`", "command substitution"}, {`ls "$(x)"`, "command substitution"}, {"ls ${x:-$(y)}", "variable expansion"},
		{"ls <(x)", "process substitution"}, {"ls $((1))", "arithmetic expansion"}, {"ls $[1]", "arithmetic expansion"},
		{"ls $'x'", "ANSI-C quoting"}, {`ls $"x"`, "translated string"},
		{"ls > f", "redirection"}, {"ls 2>&1", "redirection"}, {"ls < f", "redirection"}, {"> f", "redirection"}, {"ls &> f", "redirection"}, {"ls <> f", "redirection"}, {"ls >| f", "redirection"},
		{"cat <<E\nx\nE", "heredoc"}, {"cat <<< x", "heredoc"},
		{"ls & pwd", "background job"}, {"ls &", "background job"}, {"ls |& wc", "operator |&"}, {"! ls", "negation"},
		{"(ls)", "subshell"}, {"{ ls; }", "group"}, {"f() { ls; }", "function"}, {"function f { ls; }", "function"},
		{"if ls; then ls; fi", "compound statement"}, {"while ls; do ls; done", "compound statement"}, {"for i in a; do ls; done", "compound statement"}, {"case x in x) ls;; esac", "compound statement"},
		{"[[ -f x ]]", "conditional [["}, {"((1))", "arithmetic command"}, {"let x=1", "arithmetic command"},
		{"export X=1", "declaration"}, {"time ls", "time"}, {"coproc ls", "coprocess"},
		{"X=1 ls", "assignment"}, {"X=1", "assignment"}, {"LD_PRELOAD=x ls", "assignment"},
		{"ls {a,b}", "brace expansion"}, {"ls {1..3}", "brace expansion"}, {"{rm,x}", "brace expansion"}, {`ls {a,"b c"}`, "brace expansion"},
		{"ls ~", "tilde expansion"}, {"ls ~root/x", "tilde expansion"}, {"ls --x=~/y", "tilde expansion"},
		{"ls @(a|b)", "extended glob"}, {"ls !(a)", "extended glob"}, {"ls !!", "history expansion"}, {`echo "!x"`, "history expansion"},
		{"l* x", "glob"}, {"ls # x", "comment"},
		{"ls \x00", "character"}, {"ls\r\nrm x", "character"}, {"ls \x1b[2K", "character"}, {"ls \u202erm", "character"}, {"ls \u200bx", "character"},
		{"ls \u00a0x", "character"}, {"ls \xff", "character"}, {"ls \U000e0041", "character"}, {"ls \\\n-a", "character"}, {"ls \u3164x", "character"},
		{"ls $(", "syntax"}, {"ls 'x", "syntax"}, {`ls "x`, "syntax"}, {"ls | | wc", "syntax"}, {"&& ls", "syntax"}, {"ls &&", "syntax"}, {"ls ;; ls", "syntax"},
		{strings.Repeat("x", command.MaxLength+1), "long command"},
	}
	for _, test := range tests {
		_, err := command.Parse(test.text)
		var refusal *command.Refusal
		if !errors.As(err, &refusal) {
			t.Errorf("%.40q: got %v, want a refusal", test.text, err)
		} else if refusal.Construct != test.construct || refusal.Reason == "" {
			t.Errorf("%.40q: refused as %q, want %q: %v", test.text, refusal.Construct, test.construct, err)
		}
	}
}

func TestParseSurvivesDeepNesting(t *testing.T) {
	for _, open := range []string{"$(", "(", "{ ", "\"$(", "${x:-", "$((", "if ", "<(", "a|", "! "} {
		text := strings.Repeat(open, command.MaxLength/len(open))
		if _, err := command.Parse(text); err == nil {
			t.Errorf("%q many times over: got no error", open)
		}
	}
}

// TestBypasses holds the ways in which allowlists of commands are known to be
// passed, one class a row.
func TestBypasses(t *testing.T) {
	classes := map[string][]string{
		"a path for a name":                                {"/tmp/x/git status", "./git status", "../cat f", `.\\cat f`, "sub/ls"},
		"a wrapper that runs its operands":                 {"env ls", "xargs rm", "nice ls", "timeout 5 ls", "nohup ls", "sudo ls", "busybox ls", "command ls", "exec ls", "builtin ls", "eval ls", "stdbuf -o0 ls", "setsid ls", "watch ls", "time ls", "chroot . ls", "script -c ls", "parallel ls"},
		"an interpreter":                                   {"sh -c ls", "bash x", "python3 -c 1", "python3 x.py", "perl -e 1", "ruby -e 1", "node -e 1", "php -r 1", "lua x", "python3", "bash", "node", "python3 -v", "python3 -im x"},
		"project code behind a harmless end":               {"python3 x.py --help", "python3 -m pip --version", "python3 -m x --help", "make --version x", "npm run x --version", "go run . --version", "cargo --version", "yarn --version"},
		"an abbreviated option":                            {"sort --out=x f", "sort --outp x f", "git diff --outp=x", "base64 --out=x f", "tar tf a --use-c=sh", "date --se=x", "git grep --open x", "sed --in s/a/b/ f", "grep --fil=/etc/passwd f", "fd --exe rm"},
		"an option in a cluster":                           {"sort -uo x f", "git grep -nOsh x", "fd -Hx rm", "sed -ni p f", "tree -ao x", "rg -nz x", "tar -tfa.tar -Ish"},
		"an attached value":                                {"sort -ox f", "base64 -ox f", "grep -f/etc/passwd f", "tar -f/etc/x -t", "git blame -S/etc/passwd f", "sort --output=x f", "date -r/etc/passwd"},
		"an option after operands":                         {"sort f -o x", "cat f --unknown", "grep x f -f /etc/passwd", "tar tf a.tar --to-command=sh", "git diff a -- b --no-index /etc", "find . -name x -delete", "jq . f -L x"},
		"a file outside behind an option":                  {"grep -f /etc/passwd f", "wc --files0-from=/etc/x", "du -X /etc/x .", "date -r /etc/shadow", "jq --slurpfile a /etc/x . f", "find . -newer /etc/x", "diff -X /etc/x a b", "git ls-files -X /etc/x", "rg --ignore-file /etc/x y"},
		"a climbing path":                                  {"cat ../x", "cat a/../../x", "cat ./../x", "ls ..", "git -C .. status", "head -n 5 ../../x", "git diff ../x y", "test -f ../x"},
		"a climb after a directory option":                 {"git -C sub diff -- ../../x", "git -C a -C ../.. status"},
		"a second operand that is written":                 {"uniq a b", "xxd a b", "hostname x", "git config user.name x", "git symbolic-ref HEAD x", "uniq *", "uniq -- a b", "date 01010101"},
		"a list that follows links":                        {"ls -L", "find -L .", "find . -follow", "rg -L x", "fd -L x", "du -L .", "tree -l"},
		"git configuration":                                {"git -c core.pager=x log", "git -ccore.pager=x log", "git --config-env=a=b log", "git --exec-path=. status", "git --git-dir=x status", "git --git-dir x status", "git -p log", "git --paginate log", "git --work-tree . status"},
		"git programs":                                     {"git diff --ext-diff", "git log --ext-diff", "git show --textconv", "git grep -O x", "git log --show-signature", "git log --format=%G?", "git log --pretty=format:%GS", "git tag -v x", "git cat-file --textconv a", "git cat-file --filters a", "git difftool", "git help -w x", "git bisect run x", "git rebase -x y", "git submodule foreach x", "git clone ext::sh"},
		"git writes":                                       {"git branch x", "git branch -D x", "git branch --list -D x", "git tag x", "git reflog expire", "git reflog -n 5 expire", "git remote -v update", "git stash", "git stash pop", "git config -e", "git log --output=x", "git worktree add x", "git fetch", "git gc", "git notes add", "git checkout .", "git -C . commit"},
		"sed scripts":                                      {"sed e f", "sed 1e f", "sed 's/a/b/w x' f", "sed 's/a/b/ge' f", "sed 's/a/b/;w x' f", "sed -e p -e 'w x' f", "sed '$!{w x\n}' f", "sed --expression='r x' f", "sed 's/[/]/;w x;s/a/b/' f", "sed '/[]/]w x/p' f", `sed 's/a\/b/w x' f`, "sed -n '/a/w x' f", "sed 'y/a/b/e' f", "sed -s -n -f x f", "sed -l 1 'e id'", "sed 'a\\\ne' f", "sed '0~2e id' f", "sed p{e f", "sed '1,/x/I e id' f"},
		"awk programs":                                     {`awk 'BEGIN{system("id")}'`, `awk '{print | "sh"}' f`, `awk '{print >> "x"}' f`, `awk '{getline < "/etc/passwd"}' f`, `awk '@load "x"' f`, "awk -f x f", "awk -i x 1 f", `awk 'BEGIN{while(("id" | getline l)>0)print l}'`, `awk 'BEGIN{SYMTAB["x"]=1}'`, `awk '{print}' FS=: /etc/passwd`},
		"jq programs":                                      {`jq 'import "x" as y; .' f`, `jq 'include "x"; .' f`, `jq '$ENV.X' f`, `jq 'env.X' f`, "jq -nf x", "jq -n input_filename f"},
		"find actions":                                     {"find . -exec x ;", "find . -execdir x +", "find . -ok x ;", "find . -fprintf x y", "find . -fls x", "find -files0-from x"},
		"archives":                                         {"tar xf a", "tar -xf a", "tar tf a -I sh", "tar tf h:a", "tar -tf a --checkpoint-action=exec=sh", "tar --list --file=a --use-compress-program sh", "tar tfI a sh", "tar t -f a -C /", "unzip a", "unzip -lo a", "gzip a", "gunzip a"},
		"a value that is an option here":                   {"column -n /etc/passwd", "hexdump -s /etc/passwd f", "ls -T /etc", "od -w /etc/passwd", "xxd -ps /etc/passwd"},
		"an option that makes a file of the first operand": {"grep /etc/passwd -e x", "grep /etc/passwd f -f g", "rg /etc -e x", "rg /etc --files", "sed /etc/p -e p", "git grep /etc/x -e y", "egrep /etc/passwd --regexp=x"},
		"response files":                                   {"strings @x", "mypy @x", "gcc @x"},
		"secrets in the environment":                       {"env", "printenv", "ps e", "ps auxe", "ps -E", "ps -o environ", "set", "export", "declare -p"},
		"shell builtins":                                   {"printf -v x y", "test -v x", "cd x", "source x", ". x", "trap x EXIT", "alias x=y", "hash x", "enable -f x y", "mapfile -C x y", "read x", "history", "fc -s", "ulimit 1", "exit", "kill 1", "umask 0"},
		"devices and the process table":                    {"cat /dev/sda", "cat /proc/self/environ", "head -c 1 /dev/stdin", "tail /dev/tty", "cat //etc/passwd", `cat 'C:\\x'`},
		"programs that write or send":                      {"tee f", "dd if=a of=b", "cp a b", "mv a b", "ln -s a b", "rm f", "touch f", "mkdir d", "truncate -s0 f", "split f", "curl x", "wget x", "nc x 1", "ssh x", "scp a b", "rsync a b", "ping x", "install a b", "chmod 777 f", "patch f", "ed f", "vi f", "less f", "man ls", "dig x"},
		"a glob that becomes an option":                    {"cat -*", "cat --*", "grep --file=* x", "sort --*=x f", "ls --*=x", "rg --pre=* x", "sort -o* f", "grep * f", "tar tf *", "git log --output=*", "head -n * f"},
		"names with other letters":                         {"сat f", "LS", "ls\u00a0f", "l\u200bs", "ｌｓ"},
		"a joined part":                                    {"ls; rm x", "ls && rm x", "ls || rm x", "ls | rm x", "ls\nrm x", "ls | sh", "echo cm0= | base64 -d | sh", "true; python3 -v"},
	}
	rules := command.Rules{Profile: command.Passive, Compound: true, Resolve: strict}
	for class, texts := range classes {
		for _, text := range texts {
			line, err := command.Parse(text)
			if err == nil {
				err = rules.Judge(line)
			}
			if err == nil {
				t.Errorf("%s: %s passes", class, text)
			}
		}
	}
}

// strict resolves names under a directory that has no sub-directories, links
// or parents to speak of.
func strict(name string) error {
	if !filepath.IsLocal(name) || strings.Contains(name, `\`) {
		return errors.New("it is outside the root")
	}
	return nil
}

func TestJudgeRefusesWhatItCannotJudge(t *testing.T) {
	line, err := command.Parse("ls && pwd")
	if err != nil {
		t.Fatal(err)
	}
	file := &command.Line{Parts: []command.Part{{Argv: []string{"cat", "f"}}}}
	tests := []struct {
		name  string
		rules command.Rules
		line  *command.Line
		want  string
	}{
		{"compound", command.Rules{Profile: command.Passive, Resolve: strict}, line, "one call runs one command"},
		{"no profile", command.Rules{Compound: true, Resolve: strict}, line, "not passive, full or unrestricted"},
		{"unknown profile", command.Rules{Profile: "root", Compound: true, Resolve: strict}, line, "not passive, full or unrestricted"},
		{"no resolver", command.Rules{Profile: command.Full}, file, "no root"},
		{"no line", command.Rules{Profile: command.Full}, nil, "no command"},
		{"no parts", command.Rules{Profile: command.Full}, &command.Line{}, "no command"},
		{"no words", command.Rules{Profile: command.Full}, &command.Line{Parts: []command.Part{{}}}, "name is empty"},
	}
	for _, test := range tests {
		if err := test.rules.Judge(test.line); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want an error that says %q", test.name, err, test.want)
		}
	}
}

func TestJudgeSaysWhatWouldDo(t *testing.T) {
	tests := []struct{ text, want string }{
		{"pytest -q", `command: program "pytest -q" refused: it runs project code or changes files; profile full permits it`},
		{"sort --outp=x f", `command: option "--outp" refused: sort: it is not among the options known to be harmless; leave it out`},
		{"cat /etc/passwd", `command: path "/etc/passwd" refused: it is outside the root; name a file under the root`},
		{"git push", `command: subcommand "push" refused: this use of git is not on the allowlist`},
		{"head --lin=5 f", `option "--lin" refused: head: it is not among the options known to be harmless; write --lines in full`},
		{"less f", `no allowlist profile knows it; use cat, head or tail`},
		{"python3 /etc/x.py", `refused: it is outside the root`},
		{"grep *.go f", `command: glob "*.go" refused`},
	}
	for _, test := range tests {
		err := judge(test.text, command.Passive)
		if err == nil {
			t.Errorf("%s is permitted", test.text)
			continue
		}
		if got := err.Error(); !strings.Contains(got, test.want) {
			t.Errorf("%s:\n got %s\nwant %s", test.text, got, test.want)
		}
	}
	line, _ := command.Parse("ls; pwd; rm x")
	err := command.Rules{Profile: command.Passive, Compound: true, Resolve: strict}.Judge(line)
	var refusal *command.Refusal
	if !errors.As(err, &refusal) || refusal.Part != 3 {
		t.Errorf("got %v, want a refusal of part 3", err)
	}
}

func TestUnrestrictedPermitsAll(t *testing.T) {
	if err := judge("rm -rf x", command.Unrestricted); err != nil {
		t.Error(err)
	}
	if !command.Unrestricted.Permits(command.Full) || command.Passive.Permits(command.Full) || command.Full.Permits("") || command.Profile("x").Permits("x") {
		t.Error("profiles are not in the order passive, full, unrestricted")
	}
}

func TestFilesAreAskedForAndListed(t *testing.T) {
	tests := []struct {
		text string
		want []command.File
	}{
		{"cat a b/c -", []command.File{{Path: "a"}, {Path: "b/c"}}},
		{"grep -f p x", []command.File{{Path: "p"}, {Path: "x"}}},
		{"grep p x", []command.File{{Path: "x"}}},
		{"git -C sub diff -- a", []command.File{{Path: "sub"}, {Path: "sub/a"}}},
		{"cp a b", []command.File{{Path: "a", Write: true}, {Path: "b", Write: true}}},
		{"test -f a -o b = c", []command.File{{Path: "a"}}},
		{"find src -newer x -name y", []command.File{{Path: "src"}, {Path: "x"}}},
		{"npm run build", []command.File{{Path: "build", Maybe: true}}},
		{"python3 a.py --out=/x", []command.File{{Path: "a.py"}, {Path: "/x", Maybe: true}}},
		{"cat a | head -n 3 b", []command.File{{Path: "a"}, {Path: "b"}}},
		{"echo a", nil},
	}
	for _, test := range tests {
		line, err := command.Parse(test.text)
		if err != nil {
			t.Fatal(err)
		}
		got, err := command.Files(line, command.Full)
		if err != nil {
			t.Errorf("%s: %v", test.text, err)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.text, diff)
		}
	}
	if _, err := command.Files(&command.Line{Parts: []command.Part{{Argv: []string{"rm", "x"}}}}, command.Full); err == nil {
		t.Error("the files of a command that no profile permits were listed")
	}
}

func TestPrepare(t *testing.T) {
	tests := []struct {
		text string
		want string
		env  string
	}{
		{"grep -Rn x .", "grep -rn x .", ""},
		{"grep --dereference-recursive x .", "grep --recursive x .", ""},
		{"rg x", "rg --no-config x", ""},
		{"diff -r a b", "diff --no-dereference -r a b", ""},
		{"python3 -m py_compile a.py", "python3 -I -S -m py_compile a.py", ""},
		{"ruff check src", "ruff check --no-fix --no-cache src", ""},
		{"mypy a.py", "mypy --config-file= --no-incremental --cache-dir=/dev/null a.py", ""},
		{"head -n5 -q a -- b", "head -n5 -q a -- b", ""},
		{"go version", "go version", "GOTOOLCHAIN=local"},
		{"sort -k2 -t , a", "sort -k2 -t , a", ""},
		{"tar tvf a.tar x", "tar tvf a.tar x", ""},
		{"[ -f x ]", "[ -f x ]", ""},
	}
	for _, test := range tests {
		argv, env := command.Prepare(parsePart(t, test.text), command.Passive)
		if got := strings.Join(argv, " "); got != test.want {
			t.Errorf("%s: got %s, want %s", test.text, got, test.want)
		}
		if test.env != "" && !slices.Contains(env, test.env) {
			t.Errorf("%s: environment %v has no %s", test.text, env, test.env)
		}
	}
	argv, env := command.Prepare(parsePart(t, "git -C sub diff HEAD -- a"), command.Full)
	got := strings.Join(argv, " ")
	for _, want := range []string{"-c core.fsmonitor=false", "-C sub diff --no-ext-diff --no-textconv HEAD -- a"} {
		if !strings.Contains(got, want) {
			t.Errorf("git: %s lacks %s", got, want)
		}
	}
	if !slices.Contains(env, "GIT_PAGER=cat") {
		t.Errorf("git: environment %v has no GIT_PAGER", env)
	}
	if argv, _ := command.Prepare(parsePart(t, "rm x"), command.Full); argv != nil {
		t.Errorf("a refused part is prepared as %v", argv)
	}
	if argv, _ := command.Prepare(parsePart(t, "pytest"), command.Passive); argv != nil {
		t.Errorf("what passive refuses is prepared under it as %v", argv)
	}
	if argv, _ := command.Prepare(parsePart(t, "mypy a.py"), command.Full); strings.Join(argv, " ") != "mypy a.py" {
		t.Errorf("under full the project's configuration is switched off: %v", argv)
	}
	if argv, _ := command.Prepare(parsePart(t, "rm x"), command.Unrestricted); strings.Join(argv, " ") != "rm x" {
		t.Errorf("unrestricted: got %v", argv)
	}
}

func parsePart(t *testing.T, text string) command.Part {
	t.Helper()
	line, err := command.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return line.Parts[0]
}

func TestPreparedIsPermitted(t *testing.T) {
	for _, shape := range command.Shapes() {
		for _, text := range shape.Allow {
			if argv, _ := command.Prepare(parsePart(t, text), shape.Profile); len(argv) == 0 {
				t.Errorf("%s is permitted, but cannot be prepared", text)
			}
		}
	}
}

func TestExpand(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b.go", "a.go", ".hidden.go", "-o.go", "x.txt", "sub/c.go"} {
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(os.TempDir(), filepath.Join(dir, "outside.go")); err != nil {
		t.Logf("links are not tested: %v", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	tests := []struct{ text, want string }{
		{"wc -l *.go", "wc -l ./-o.go a.go b.go"},
		{"wc '*.go' x*", "wc *.go x.txt"},
		{"wc */*.go", "wc sub/c.go"},
		{"wc ./[ab].go", "wc ./a.go ./b.go"},
		{"wc .h*", "wc .hidden.go"},
		{"wc *.none", "wc *.none"},
		{"wc ../*", "wc ../*"},
		{"wc /*", "wc /*"},
		{"wc '*'.go", "wc *.go"},
		{"ls -d */", "ls -d sub/"},
		{"grep --include=*.go x", "grep --include=*.go x"},
	}
	for _, test := range tests {
		part := command.Expand(parsePart(t, test.text), root.FS())
		if got := strings.Join(part.Argv, " "); got != test.want || len(part.Globs) > 0 {
			t.Errorf("%s: got %s, want %s", test.text, got, test.want)
		}
	}
}

func TestMatch(t *testing.T) {
	tests := []struct {
		pattern, text string
		want          bool
	}{
		{"git status*", "git status", true}, {"git status*", "git status -s", true}, {"git status*", "git statusx", false},
		{"git log*", "git logout", false}, {"git status *", "git status", true}, {"git *", "git push", true}, {"git*", "git push", true}, {"git*", "gitk", false},
		{"git status", "git status -s", false}, {"git status", "git status", true}, {"git status", `git "status"`, true},
		{"git status*", "/tmp/x/git status", false}, {"git status*", "./git status", false}, {"git status*", "git -c a=b status", false},
		{"git * --stat", "git diff --stat", true}, {"git * status", "git --exec-path=x status", false},
		{"npm run test:*", "npm run test:unit", true}, {"npm run test:*", "npm run test:unit x", false}, {"npm run test:*", "npm run build", false},
		{"cat src/*", "cat src/a", true}, {"cat src/*", "cat src/../../x", false}, {"cat src/*", "cat src/a /etc/passwd", false}, {"cat src/*", "cat srcx", false},
		{"git log --format=*", "git log --format=x", true}, {"git log --format=*", "git log --output=x", false},
		{"go test ./...", "go test ./...", true}, {"go test ./...", "go test ./x", false},
		{"grep '*' f", "grep x f", false}, {"grep '*' f", "grep '*' f", true}, {"*", "rm x", false}, {"", "ls", false}, {"git $X", "git x", false}, {"ls && pwd", "ls", false},
		{"make a*b", "make axb", true}, {"make a*b", "make ab", true}, {"make a*b", "make a", false}, {"make a*a", "make a", false},
	}
	for _, test := range tests {
		if got := command.Match(test.pattern, parsePart(t, test.text)); got != test.want {
			t.Errorf("Match(%q, %q) = %v", test.pattern, test.text, got)
		}
	}
}

// What grants a command that reads does not grant the options by which it
// writes or runs something.
func TestGrantsOfReadingCommands(t *testing.T) {
	for _, test := range []struct {
		pattern, text string
		want          bool
	}{
		{"git log*", "git log --oneline -5 -- a.txt", true}, {"git log*", "git log --output=x", false}, {"git log*", "git log -p --ext-diff", false},
		{"git log*", "git log --output x", false}, {"git log --output=*", "git log --output=x", true}, {"git *", "git push", true},
		{"git diff*", "git diff --no-index --output=x a b", false}, {"git grep *", "git grep --open-files-in-pager=sh x", false}, {"git grep *", "git grep x", true},
		{"rg *", "rg -n x src", true}, {"rg *", "rg --pre ./x y", false}, {"find *", "find . -name '*.go'", true},
		{"find *", "find . -exec rm {} +", false}, {"find *", "find . -delete", false}, {"find *", "find . -fprint x", false},
		{"sort*", "sort a.txt", true}, {"sort*", "sort -o b.txt a.txt", false}, {"sort *", "sort --compress-program=sh a", false},
		{"sed -n *", "sed -n 1,5p a.txt", true}, {"sed -n *", "sed -n '1e id' a.txt", false}, {"sed -n *", "sed -n 'w x' a.txt", false},
		{"tar -tf *", "tar -tf a.tar", true}, {"tar -tf *", "tar -tf a.tar --to-command=sh", false}, {"tree *", "tree -o x", false},
		{"rg *", "rg x *", false}, {"rg *", "rg x ./*", true}, {"rg *", "rg x -- *", true}, {"rg *", "rg x [-]*", false}, // a file may be called --pre=…
		{"npm run test*", "npm run test --anything", true}, {"make *", "make --eval=x", true},
	} {
		line, err := command.Parse(test.text)
		if err != nil {
			t.Fatal(err)
		}
		if got := command.MatchAll(test.pattern, line); got != test.want {
			t.Errorf("%q covers %q: %v", test.pattern, test.text, got)
		}
	}
}

func TestMatchAllAndAny(t *testing.T) {
	tests := []struct {
		text     string
		all, any bool
	}{
		{"git log", true, true}, {"git log && git log -1", true, true}, {"git log; rm x", false, true}, {"rm x | git log", false, true},
		{"ls", false, false}, {"/usr/bin/git log", false, true},
		{"git -C . log", false, true}, {"git -c a.b=c --no-pager log -1", false, true}, {"env -u X A=1 git log", false, true}, {"command git log", false, true},
		{"timeout 5 nice -n 3 git log", false, true}, {"xargs git log", false, true}, {"find . -exec git log {} +", false, true}, {"/bin/sh -c 'cd x && git log'", false, true},
		{`bash -c "timeout 3 sh -c 'git log'"`, false, true}, {"eval 'g$x log'", false, true}, {"busybox sh -c 'git log'", false, true},
		{`env -S"git log"`, false, true}, {`env --split-string="git log -p"`, false, true}, {`su -c"git log"`, false, true}, {`trap "git log" EXIT`, false, true}, {`env -S"git show"`, false, false},
		{"echo git log", false, false}, {"git commit -m 'git log'", false, false}, {"git show log", false, false}, {"sh -c 'ls -l'", false, false}, {"env A=1 ls", false, false},
		{"git --", false, false}, {"sh", false, false},
	}
	pattern, err := command.ParsePattern("git log*")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range tests {
		line, err := command.Parse(test.text)
		if err != nil {
			t.Fatal(err)
		}
		if all, any := pattern.MatchAll(line), pattern.MatchAny(line); all != test.all || any != test.any {
			t.Errorf("%s: all %v, any %v; want %v, %v", test.text, all, any, test.all, test.any)
		}
		if got := command.MatchAll("git log*", line); got != test.all {
			t.Errorf("MatchAll of %s = %v", test.text, got)
		}
	}
	if pattern.MatchAll(&command.Line{}) {
		t.Error("an empty line matches")
	}
	for _, bad := range []string{"", "a | b", "git $X", "g*t x", "ls >x", "*"} {
		if _, err := command.ParsePattern(bad); err == nil {
			t.Errorf("pattern %q is read", bad)
		}
	}
}
