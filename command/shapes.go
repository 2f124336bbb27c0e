package command

import (
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
)

//go:embed shapes.yaml
var shapesYAML []byte

// Shape is one form in which programs may be called. The allowlist is a list
// of shapes; a command is permitted when one shape of the profile fits it
// entirely. What a shape does not name is refused.
//
// Kinds say what a value is: text (free), number, name (letters, digits and
// _.+-), path (a file that is read), write (a file that is changed), dir (a
// directory that later paths are relative to), rev (a revision or a path), arg
// (an argument of project code, which may be a path or hold one: --out=x),
// /…/ (a regular expression that the value must match entirely), and format,
// sed, awk, jq (little languages that are read and must be harmless).
type Shape struct {
	// Names are the programs, each with the words that must follow it:
	// "cat", "git stash list".
	Names []string `yaml:"names"`
	// About says what the programs do, or why the shape is drawn as it is.
	About string `yaml:"about"`
	// Profile is the least profile that permits the shape.
	Profile Profile `yaml:"profile"`
	// Style is how options are written. Empty: -a, clustered -abc, -oVALUE,
	// -o VALUE, --long, --long=VALUE, "--" ends them. "words": every option is
	// a word of its own (find). "go": -name, --name, -name=VALUE. "plain":
	// there are no options, every word is an operand. "loose": every word is an
	// operand but for the refused options. "test": the language of test(1).
	Style string `yaml:"style"`
	// With names sets of options that the shape shares with others.
	With []string `yaml:"with"`
	// Flags are options without a value, separated by spaces.
	Flags string `yaml:"flags"`
	// Optional are options whose value, if any, is attached to them.
	Optional map[string]string `yaml:"optional"`
	// Values are options that take values, with a kind for each value. A kind
	// that ends in "?" may be missing at the end of the command.
	Values map[string]string `yaml:"values"`
	// Refused are options that a reader might expect, and why they are not there.
	Refused map[string]string `yaml:"refused"`
	// Instead are options that [Prepare] replaces by a harmless relative.
	Instead map[string]string `yaml:"instead"`
	// Numeric permits a number as an option: head -20.
	Numeric bool `yaml:"numeric"`
	// Bundle reads a first operand without a dash as options: tar tf.
	Bundle bool `yaml:"bundle"`
	// Operands are the kinds of the operands; the last may end in "..." and
	// then repeats. More operands are refused.
	Operands string `yaml:"operands"`
	// OperandsWith are options one of which must be present for operands to be
	// permitted; empty: operands need none.
	OperandsWith string `yaml:"operands_with"`
	// OperandFrom are options that stand for the first operand (grep -e).
	OperandFrom string `yaml:"operand_from"`
	// Requires are options one of which must be present.
	Requires string `yaml:"requires"`
	// Stop ends the options at the first operand.
	Stop bool `yaml:"stop"`
	// Ends are options after whose value everything is an argument of the
	// code that runs (python3 -m).
	Ends string `yaml:"ends"`
	// Never are regular expressions that no operand and no path may match, and why.
	Never map[string]string `yaml:"never"`
	// Before are words that [Prepare] puts after the program's name, and Insert
	// those it puts after the words that belong to the name.
	Before []string `yaml:"before"`
	Insert []string `yaml:"insert"`
	// Env are settings that [Prepare] asks for.
	Env []string `yaml:"env"`
	// Allow and Refuse are examples.
	Allow  []string `yaml:"allow"`
	Refuse []string `yaml:"refuse"`

	compiled *compiled
}

// Program holds what all shapes of a program share: the options before its
// subcommand, and what hardens every call.
type Program struct {
	Flags   string            `yaml:"flags"`
	Values  map[string]string `yaml:"values"`
	Refused map[string]string `yaml:"refused"`
	Insert  []string          `yaml:"insert"`
	Env     []string          `yaml:"env"`

	options map[string]option
}

type catalogue struct {
	Programs map[string]*Program `yaml:"programs"`
	Absent   map[string]string   `yaml:"absent"`
	Sets     map[string]*Shape   `yaml:"sets"`
	Shapes   []*Shape            `yaml:"shapes"`

	byName map[string][]candidate // program -> its shapes, lesser profiles and longer names first
}

type candidate struct {
	words []string // after the program's name
	shape *Shape
}

// option is what a shape says of one option.
type option struct {
	kinds    []kind
	attached bool   // its value is optional, and then attached
	last     bool   // its value may be missing at the end
	refused  string // why it is refused
	instead  string
}

// compiled is a shape in the form in which it is applied.
type compiled struct {
	options                                   map[string]option
	operands                                  []kind
	more                                      bool // the last operand repeats
	operandsWith, operandFrom, requires, ends []string
	never                                     []never
}

type never struct {
	match  *regexp.Regexp
	reason string
}

// loaded is the embedded allowlist. It is checked by the tests; a data file
// that cannot be read is the programmer's error.
var loaded = sync.OnceValue(func() *catalogue {
	c, err := loadCatalogue(bytes.NewReader(shapesYAML))
	if err != nil {
		panic("command: shapes.yaml: " + err.Error())
	}
	return c
})

// Shapes returns the allowlist, in the order of its data file.
func Shapes() []Shape {
	shapes := make([]Shape, 0, len(loaded().Shapes))
	for _, s := range loaded().Shapes {
		shapes = append(shapes, *s)
	}
	return shapes
}

// Names returns the programs that some profile permits, sorted.
func Names() []string {
	names := make([]string, 0, len(loaded().byName))
	for name := range loaded().byName {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func loadCatalogue(r io.Reader) (*catalogue, error) {
	c := &catalogue{byName: map[string][]candidate{}}
	dec := yaml.NewDecoder(r)
	dec.KnownFields(true)
	if err := dec.Decode(c); err != nil {
		return nil, err
	}
	for name, p := range c.Programs {
		p.options = map[string]option{}
		if err := readOptions(p.options, &Shape{Flags: p.Flags, Values: p.Values, Refused: p.Refused}); err != nil {
			return nil, fmt.Errorf("program %s: %w", name, err)
		}
	}
	for i, s := range c.Shapes {
		if err := c.compile(s); err != nil {
			return nil, fmt.Errorf("shape %d %v: %w", i+1, s.Names, err)
		}
		for _, full := range s.Names {
			words := strings.Fields(full)
			c.byName[words[0]] = append(c.byName[words[0]], candidate{words[1:], s})
		}
	}
	for _, list := range c.byName {
		slices.SortStableFunc(list, func(a, b candidate) int {
			if d := a.shape.Profile.rank() - b.shape.Profile.rank(); d != 0 {
				return d
			}
			return len(b.words) - len(a.words)
		})
	}
	return c, nil
}

func (c *catalogue) compile(s *Shape) error {
	if len(s.Names) == 0 || s.About == "" || s.Profile != Passive && s.Profile != Full {
		return fmt.Errorf("names, about and a profile (passive or full) are needed")
	}
	if !slices.Contains([]string{"", "words", "go", "plain", "loose", "test"}, s.Style) {
		return fmt.Errorf("style %q is unknown", s.Style)
	}
	out := &compiled{options: map[string]option{}}
	for _, name := range s.With {
		set, ok := c.Sets[name]
		if !ok {
			return fmt.Errorf("set %q is unknown", name)
		}
		if err := readOptions(out.options, set); err != nil {
			return fmt.Errorf("set %q: %w", name, err)
		}
		s.Numeric = s.Numeric || set.Numeric
	}
	if err := readOptions(out.options, s); err != nil {
		return err
	}
	if err := out.readOperands(s); err != nil {
		return err
	}
	for _, list := range []struct {
		to   *[]string
		text string
	}{{&out.operandsWith, s.OperandsWith}, {&out.operandFrom, s.OperandFrom}, {&out.requires, s.Requires}, {&out.ends, s.Ends}} {
		*list.to = strings.Fields(list.text)
		for _, name := range *list.to {
			if opt, ok := out.options[name]; !ok || opt.refused != "" {
				return fmt.Errorf("option %s is named, but not permitted", name)
			}
		}
	}
	for pattern, reason := range s.Never {
		re, err := regexp.Compile(pattern)
		if err != nil {
			return err
		}
		out.never = append(out.never, never{re, reason})
	}
	s.compiled = out
	return nil
}

func (c *compiled) readOperands(s *Shape) error {
	for _, name := range strings.Fields(s.Operands) {
		if c.more {
			return fmt.Errorf("operands: only the last may repeat")
		}
		name, more := strings.CutSuffix(name, "...")
		k, err := readKind(name)
		if err != nil {
			return err
		}
		c.operands, c.more = append(c.operands, k), more
	}
	return nil
}

// readOptions adds the options of a shape; later ones replace earlier ones.
func readOptions(to map[string]option, s *Shape) error {
	for _, name := range strings.Fields(s.Flags) {
		to[name] = option{instead: s.Instead[name]}
	}
	for name, text := range s.Optional {
		k, err := readKind(text)
		if err != nil {
			return fmt.Errorf("option %s: %w", name, err)
		}
		for _, n := range strings.Fields(name) {
			to[n] = option{kinds: []kind{k}, attached: true}
		}
	}
	for name, text := range s.Values {
		opt := option{}
		for _, kindName := range strings.Fields(text) {
			kindName, last := strings.CutSuffix(kindName, "?")
			k, err := readKind(kindName)
			if err != nil {
				return fmt.Errorf("option %s: %w", name, err)
			}
			opt.kinds, opt.last = append(opt.kinds, k), last
		}
		for _, n := range strings.Fields(name) {
			to[n] = opt
		}
	}
	for name, reason := range s.Refused {
		for _, n := range strings.Fields(name) {
			to[n] = option{refused: reason}
		}
	}
	return nil
}
