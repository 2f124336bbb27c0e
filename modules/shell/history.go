package shell

import (
	"regexp"
	"slices"
	"strings"

	"github.com/helve-ai/helve/command"
)

// judgeHistory keeps git from showing what was committed of ignored files: it
// leaves them out of what shows the contents of many, by pathspecs, and refuses
// what would show an object whose path nobody knows.
func (j *judging) judgeHistory(argv []string) ([]string, error) {
	if argv[0] != "git" {
		return argv, nil
	}
	at := subcommand(argv)
	if at == 0 {
		return argv, nil
	}
	hidden, err := j.shell.root.Hidden()
	if err != nil {
		return nil, refusedPath(".", err)
	}
	if len(hidden) == 0 {
		return argv, nil
	}
	g := &history{argv: slices.Clone(argv), at: at, hidden: hidden}
	if !g.shows() {
		return argv, nil
	}
	if why := g.refuse(); why != nil {
		j.ignored = true
		return nil, why
	}
	return g.leaveOut(), nil
}

// subcommand returns where git's subcommand is; 0: there is none.
func subcommand(argv []string) int {
	for i := 1; i < len(argv); i++ {
		switch {
		case argv[i] == "-C" || argv[i] == "-c":
			i++
		case !strings.HasPrefix(argv[i], "-"):
			return i
		}
	}
	return 0
}

// history is a command of git in a folder where something is ignored.
type history struct {
	argv   []string
	at     int // the subcommand
	hidden []string
}

func (h *history) name() string { return h.argv[h.at] }

func (h *history) has(letters string, long ...string) bool {
	return hasOption(h.argv[h.at:], letters, long...)
}

// shows reports whether the command shows, or searches, the contents of files.
// Options are read generously: only what is ignored is left out in vain.
func (h *history) shows() bool {
	switch h.name() {
	case "show", "diff", "diff-tree", "diff-index", "diff-files", "range-diff", "cat-file", "grep", "whatchanged":
		return true
	case "status":
		return h.has("v", "--verbose")
	case "log", "reflog", "stash":
		return h.has("puSGUcm", "--patch", "--patch-with-stat", "--patch-with-raw", "--unified", "--word-diff", "--word-diff-regex", "--color-words",
			"--cc", "--dd", "--diff-merges", "--remerge-diff", "--full-diff", "--function-context", "--binary", "--pickaxe-all", "--pickaxe-regex")
	}
	return false
}

var (
	objectName  = regexp.MustCompile(`^\^?([0-9a-fA-F]{4,64})(\^\{[^}]*\})?$`)
	onlyObjects = regexp.MustCompile(`^(\^?)([0-9a-fA-F]{4,64})$`)
	peeled      = regexp.MustCompile(`\^\{(?:blob|object)?\}`)
)

// refuse says what is asked for that cannot be told from what is ignored.
func (h *history) refuse() *command.Refusal {
	refusal := func(text, reason, remedy string) *command.Refusal {
		return &command.Refusal{Construct: "path", Text: text, Reason: reason, Remedy: remedy}
	}
	if len(h.hidden) > 1000 {
		return refusal(h.name(), "there are too many patterns in .helveignore to leave out what they hide", "ask the operator to shorten the file")
	}
	for _, flag := range []string{"--literal-pathspecs", "--glob-pathspecs", "--noglob-pathspecs"} {
		if slices.Contains(h.argv[1:h.at], flag) {
			return refusal(flag, "what is ignored could not be left out", "leave the option out")
		}
	}
	switch {
	case h.name() == "range-diff" || h.name() == "stash" && slices.Contains(h.argv, "show"):
		return refusal(h.name(), "it shows the contents of files, and ignored ones cannot be left out", "use git diff or git log -p")
	case h.name() == "status":
		return refusal("-v", "it shows the contents of what is staged, and ignored files cannot be left out", "use git status, and git diff --cached")
	case h.has("", "--full-diff"):
		return refusal("--full-diff", "it shows all files of a commit, ignored ones as well", "leave the option out")
	case h.has("", "--submodule"):
		return refusal("--submodule", "what is ignored cannot be left out of submodules", "name the submodule's folder with -C")
	case h.has("", "--follow"):
		return refusal("--follow", "it takes one path, so that what is ignored cannot be left out", "leave the option out")
	case h.name() == "cat-file" && h.has("ts", "--batch-check"):
		return nil
	}
	for _, word := range h.operands() {
		if peeled.MatchString(word) || h.name() == "cat-file" && objectName.MatchString(word) {
			return refusal(word, "an object that is named by itself may be the content of an ignored file", "name it by its path, as in HEAD:a.txt")
		}
		if strings.HasPrefix(h.name(), "diff") && strings.Contains(strings.TrimLeft(word, ":"), ":") && !strings.HasPrefix(word, ":") && slices.ContainsFunc(h.hidden, func(p string) bool { return strings.Contains(p, "/") }) {
			return refusal(word, "beneath it, ignored files go by other paths", "compare commits, and name the path behind --")
		}
	}
	return nil
}

// operands returns the words behind the subcommand that are no options, those
// behind "--" excepted.
func (h *history) operands() (words []string) {
	for _, word := range h.argv[h.at+1:] {
		if word == "--" {
			break
		}
		if !strings.HasPrefix(word, "-") {
			words = append(words, word)
		}
	}
	return words
}

// takesText are options whose value is the next word.
var takesText = []string{"-S", "-G", "-I", "--grep", "--author", "--committer", "--since", "--until", "--after", "--before"}

// leaveOut returns the command with pathspecs that leave out what is ignored,
// and with bare names of objects as names of commits.
func (h *history) leaveOut() []string {
	if h.name() == "cat-file" {
		return h.argv
	}
	for i, word := range h.argv[h.at+1:] {
		if word == "--" {
			break
		}
		if (h.name() == "show" || h.name() == "diff") && !slices.Contains(takesText, h.argv[h.at+i]) {
			sides := strings.SplitN(word, "..", 2)
			for k, side := range sides {
				dots := strings.TrimLeft(side, ".")
				sides[k] = side[:len(side)-len(dots)] + onlyObjects.ReplaceAllString(dots, "$1$2^{commit}")
			}
			h.argv[h.at+1+i] = strings.Join(sides, "..")
		}
	}
	for _, p := range h.hidden {
		h.argv = append(h.argv, ":(top,exclude,glob,icase)**/"+strings.TrimPrefix(p, "**/"), ":(top,exclude,glob,icase)**/"+strings.TrimPrefix(p, "**/")+"/**")
	}
	return slices.Insert(h.argv, 1, "-c", "diff.submodule=short") // of submodules nothing could be left out
}
