package command

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// MaxLength is the longest command text, in bytes, that [Parse] reads.
const MaxLength = 64 << 10

// maxDepth bounds the brackets that are open at once, quoted or not, for the
// syntax reader takes long over thousands.
const maxDepth = 200

// Parse reads text as simple commands joined by |, &&, || and ;. Anything whose
// meaning depends on a shell (expansions, substitutions, redirections,
// background jobs, compound statements, assignments, braces, tildes, history)
// and anything a reader cannot see (control, bidirectional and other invisible
// characters) is a [*Refusal]. Unquoted globs are kept as written and marked.
// A backslash quotes the next character, on every platform.
func Parse(text string) (*Line, error) {
	if err := checkRunes(text); err != nil {
		return nil, err
	}
	parser := syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true))
	file, err := parser.Parse(strings.NewReader(text), "")
	if err != nil {
		return nil, syntaxRefusal(err)
	}
	if err := checkNodes(text, file); err != nil {
		return nil, err
	}
	line := &Line{}
	for _, stmt := range file.Stmts {
		if err := line.add(stmt, ";"); err != nil {
			return nil, err
		}
	}
	if len(line.Parts) == 0 {
		return nil, &Refusal{Construct: "empty command", Reason: "there is no command in it"}
	}
	line.Parts[0].Joined = ""
	return line, nil
}

func syntaxRefusal(err error) *Refusal {
	r := &Refusal{Construct: "syntax", Reason: "it is not a complete shell command: " + err.Error()}
	var perr syntax.ParseError
	var lerr syntax.LangError
	switch {
	case errors.As(err, &perr):
		r.Reason, r.Pos = "it is not a complete shell command: "+perr.Text, int(perr.Pos.Offset())
	case errors.As(err, &lerr):
		r.Pos = int(lerr.Pos.Offset())
	}
	return r
}

// checkRunes refuses text that does not read the way it looks.
func checkRunes(text string) error {
	if len(text) > MaxLength {
		return &Refusal{Construct: "long command", Reason: "it is longer than 64 KiB", Remedy: "put the text into a file"}
	}
	depth := 0
	for i, r := range text {
		switch r {
		case '(', '{':
			depth++
		case ')', '}':
			depth = max(0, depth-1)
		}
		if depth > maxDepth {
			return &Refusal{Construct: "nesting", Pos: i, Reason: "more brackets are open than a command needs", Remedy: "put the text into a file"}
		}
		if reason := unreadable(text[i:], r); reason != "" {
			return &Refusal{Construct: "character", Text: string(r), Reason: reason, Remedy: "leave it out", Pos: i}
		}
	}
	return nil
}

func unreadable(rest string, r rune) string {
	switch {
	case r == utf8.RuneError && !strings.HasPrefix(rest, "\uFFFD"):
		return "the text is not valid UTF-8"
	case r == '\\' && strings.HasPrefix(rest, "\\\n"):
		return "a line break after a backslash hides where the command goes on"
	case r == '\n' || r == '\t':
		return ""
	case unicode.IsControl(r):
		return "it is a control character"
	case unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point):
		return "it is invisible or reorders the text around it"
	case r != ' ' && unicode.IsSpace(r):
		return "it looks like a space, but does not separate words"
	}
	return ""
}

// checkNodes refuses every kind of node that is not known to be plain.
func checkNodes(text string, file *syntax.File) error {
	var found *Refusal
	syntax.Walk(file, func(node syntax.Node) bool {
		if node == nil || found != nil {
			return false
		}
		if construct, remedy := refusedNode(node); construct != "" {
			found = &Refusal{
				Construct: construct, Text: excerpt(text, node), Pos: int(node.Pos().Offset()),
				Reason: "what it does depends on a shell, and is not known before it runs", Remedy: remedy,
			}
			return false
		}
		return true
	})
	if found != nil {
		return found
	}
	return nil
}

func excerpt(text string, node syntax.Node) string {
	from, to := int(node.Pos().Offset()), int(node.End().Offset())
	if from < 0 || to > len(text) || from >= to {
		return ""
	}
	if s := text[from:to]; len(s) <= 60 {
		return s
	}
	cut := from + 60
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[from:cut] + "…"
}

const quoteRemedy = "write the value itself, or quote it with '…'"

// refusedNode names the construct that a node is, or nothing for plain ones.
func refusedNode(node syntax.Node) (construct, remedy string) {
	switch n := node.(type) {
	case *syntax.File, *syntax.Word, *syntax.Lit:
		return "", ""
	case *syntax.Stmt:
		return refusedStmt(n)
	case *syntax.CallExpr:
		if len(n.Assigns) > 0 {
			return "assignment", "leave the variable out"
		}
		return "", ""
	case *syntax.BinaryCmd:
		if n.Op == syntax.AndStmt || n.Op == syntax.OrStmt || n.Op == syntax.Pipe {
			return "", ""
		}
		return "operator " + n.Op.String(), "use |"
	case *syntax.SglQuoted:
		if n.Dollar {
			return "ANSI-C quoting", "use '…'"
		}
		return "", ""
	case *syntax.DblQuoted:
		if n.Dollar {
			return "translated string", "use \"…\""
		}
		return "", ""
	case *syntax.ParamExp:
		return "variable expansion", quoteRemedy
	case *syntax.CmdSubst:
		return "command substitution", "run the inner command on its own"
	case *syntax.ProcSubst:
		return "process substitution", "run the inner command on its own"
	case *syntax.ArithmExp:
		return "arithmetic expansion", quoteRemedy
	case *syntax.ExtGlob:
		return "extended glob", "quote it with '…'"
	case *syntax.Comment:
		return "comment", "leave it out"
	}
	return refusedCommand(node)
}

func refusedStmt(s *syntax.Stmt) (construct, remedy string) {
	switch {
	case s.Background || s.Disown:
		return "background job", "run it in the foreground, or ask for a background run"
	case s.Coprocess:
		return "coprocess", ""
	case s.Negated:
		return "negation", "leave the ! out"
	case len(s.Redirs) == 0:
		return "", ""
	}
	switch s.Redirs[0].Op {
	case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		return "heredoc", "write the text with a tool for files"
	}
	return "redirection", "write files with a tool for files; output is returned as it is"
}

func refusedCommand(node syntax.Node) (construct, remedy string) {
	switch node.(type) {
	case *syntax.Subshell:
		return "subshell", "leave the parentheses out"
	case *syntax.Block:
		return "group", "leave the braces out"
	case *syntax.FuncDecl:
		return "function", ""
	case *syntax.TestClause:
		return "conditional [[", "use test"
	case *syntax.ArithmCmd, *syntax.LetClause:
		return "arithmetic command", ""
	case *syntax.DeclClause:
		return "declaration", ""
	case *syntax.TimeClause:
		return "time", "leave it out"
	case *syntax.CoprocClause:
		return "coprocess", ""
	}
	return "compound statement", "run its commands one by one"
}

// add appends the simple commands of a statement, from left to right. The
// operators | && || keep their precedence when the parts are read in a row.
func (l *Line) add(stmt *syntax.Stmt, joined string) error {
	switch cmd := stmt.Cmd.(type) {
	case *syntax.BinaryCmd:
		if err := l.add(cmd.X, joined); err != nil {
			return err
		}
		return l.add(cmd.Y, cmd.Op.String())
	case *syntax.CallExpr:
		part := Part{Joined: joined}
		for _, w := range cmd.Args {
			if err := part.addWord(w); err != nil {
				return err
			}
		}
		if err := part.checkName(cmd); err != nil {
			return err
		}
		l.Parts = append(l.Parts, part)
		return nil
	}
	return &Refusal{Construct: "empty command", Pos: int(stmt.Pos().Offset()), Reason: "there is no command in it"}
}

func (p *Part) checkName(cmd *syntax.CallExpr) error {
	pos := 0
	if len(cmd.Args) > 0 {
		pos = int(cmd.Args[0].Pos().Offset())
	}
	if len(p.Argv) == 0 || p.Argv[0] == "" {
		return &Refusal{Construct: "program", Pos: pos, Reason: "its name is empty"}
	}
	if _, ok := p.glob(0); ok {
		return &Refusal{Construct: "glob", Text: p.Argv[0], Pos: pos, Reason: "files would decide which program runs", Remedy: "write the program's name"}
	}
	return nil
}

// word collects what the pieces of a shell word mean.
type word struct {
	text    strings.Builder // the word, quotes removed
	pattern strings.Builder // the same, quoted wildcards escaped
	bare    strings.Builder // the unquoted characters; quoted ones are \x00
	live    strings.Builder // where ! is special: unquoted and double-quoted ones
}

func (w *word) quoted(s, live string) {
	w.text.WriteString(s)
	for i := 0; i < len(s); i++ {
		if strings.IndexByte(`*?[]\-^!`, s[i]) >= 0 {
			w.pattern.WriteByte('\\')
		}
		w.pattern.WriteByte(s[i])
		w.bare.WriteByte(0)
	}
	w.live.WriteString(live)
}

func (w *word) unquoted(raw string) {
	for i := 0; i < len(raw); i++ {
		if raw[i] == '\\' && i+1 < len(raw) {
			i++
			w.quoted(raw[i:i+1], "\x00")
			continue
		}
		c := raw[i]
		w.text.WriteByte(c)
		if c == '\\' {
			w.pattern.WriteByte('\\')
		}
		w.pattern.WriteByte(c)
		w.bare.WriteByte(c)
		w.live.WriteByte(c)
	}
}

// doubled adds the inside of a double-quoted string, where a backslash quotes
// only $ ` " and itself.
func (w *word) doubled(raw string) {
	var plain, live strings.Builder
	for i := 0; i < len(raw); i++ {
		if raw[i] == '\\' && i+1 < len(raw) && strings.IndexByte("$`\"\\", raw[i+1]) >= 0 {
			i++
			plain.WriteByte(raw[i])
			live.WriteByte(0)
			continue
		}
		plain.WriteByte(raw[i])
		live.WriteByte(raw[i])
	}
	w.quoted(plain.String(), live.String())
}

func (p *Part) addWord(node *syntax.Word) error {
	var w word
	for _, piece := range node.Parts {
		switch x := piece.(type) {
		case *syntax.Lit:
			w.unquoted(x.Value)
		case *syntax.SglQuoted:
			w.quoted(x.Value, strings.Repeat("\x00", len(x.Value)))
		case *syntax.DblQuoted:
			for _, inner := range x.Parts {
				lit, ok := inner.(*syntax.Lit)
				if !ok {
					return &Refusal{Construct: "expansion", Pos: int(inner.Pos().Offset()), Reason: "what it does depends on a shell"}
				}
				w.doubled(lit.Value)
			}
		default:
			return &Refusal{Construct: "word", Pos: int(piece.Pos().Offset()), Reason: "it is not plain text"}
		}
	}
	if construct, reason := w.expansion(); construct != "" {
		return &Refusal{Construct: construct, Text: w.text.String(), Pos: int(node.Pos().Offset()), Reason: reason, Remedy: "quote it with '…' if it is meant as it stands"}
	}
	if w.wild() {
		p.Globs = append(p.Globs, Glob{Arg: len(p.Argv), Pattern: w.pattern.String()})
	}
	p.Argv = append(p.Argv, w.text.String())
	return nil
}

// expansion names the expansion that a shell would make of a word although its
// syntax is that of plain text.
func (w *word) expansion() (construct, reason string) {
	bare, live := w.bare.String(), w.live.String()
	if from := strings.IndexByte(bare, '{'); from >= 0 {
		inner := bare[from:]
		if to := strings.LastIndexByte(inner, '}'); to >= 0 {
			inner = inner[:to]
		}
		if strings.Contains(inner, ",") || strings.Contains(inner, "..") {
			return "brace expansion", "a shell would make several words of it"
		}
	}
	if strings.HasPrefix(bare, "~") || strings.Contains(bare, "=~") || strings.Contains(bare, ":~") {
		return "tilde expansion", "a shell would put a home directory there"
	}
	for i := 0; i < len(live); i++ {
		if live[i] == '`' || live[i] == '$' && i+1 < len(live) && strings.IndexByte(" \t\n|)/.,:;%^\x00", live[i+1]) < 0 {
			return "expansion", "a shell would replace it"
		}
	}
	for i := 0; i+1 < len(live); i++ {
		if live[i] == '!' && strings.IndexByte(" \t\n=\x00", live[i+1]) < 0 {
			return "history expansion", "an interactive shell would put an earlier command there"
		}
	}
	return "", ""
}

// wild reports whether the word has an unquoted wildcard.
func (w *word) wild() bool {
	bare := w.bare.String()
	if strings.ContainsAny(bare, "*?") {
		return true
	}
	open := strings.IndexByte(bare, '[')
	return open >= 0 && strings.IndexByte(bare[open:], ']') > 0
}
