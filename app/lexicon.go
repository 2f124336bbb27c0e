package app

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/helve-ai/helve/lexicon"
)

// ToolSearch says how tools are found.
type ToolSearch struct {
	Lexicon []string `json:"lexicon,omitempty" jsonschema:"files of further words and concepts by which tools are found, relative to this file: see docs/lexicon.md"`

	Learn          bool        `json:"learn,omitempty" jsonschema:"tools that were called after a query like this one rank somewhat higher: see docs/search.md"`
	Model          string      `json:"model,omitempty" minlen:"1" jsonschema:"a sentence model by which tools are found by their meaning as well: the name of one that helve model pull fetched, or, beginning with . or /, a folder, relative to this file: see docs/models.md"`
	Embeddings     *Embeddings `json:"embeddings,omitempty" jsonschema:"a model behind an endpoint, in place of model"`
	QueryTimeout   float64     `json:"query_timeout,omitempty" default:"1" min:"0.01" max:"60" jsonschema:"seconds that a search waits for the model before it goes by words alone"`
	QueryPrefix    string      `json:"query_prefix,omitempty" jsonschema:"what the model wants before queries, such as 'query: '"`
	DocumentPrefix string      `json:"document_prefix,omitempty" jsonschema:"what it wants before the texts of tools"`
}

// Lexicon returns the words by which the app's tools are found.
func (c *Config) Lexicon() *lexicon.Lexicon {
	if c.lexicon == nil {
		return lexicon.Default()
	}
	return c.lexicon
}

// checkLexicon reads the files that extend the lexicon, from the app's folder.
func (l *loader) checkLexicon(root *node) {
	for i, item := range root.get("tools", "search", "lexicon").list() {
		path := fmt.Sprintf("tools.search.lexicon[%d]", i)
		if item.kind != isString || l.broken[path] {
			continue
		}
		text, ok := l.lexiconFile(item, path)
		if !ok {
			continue
		}
		if l.lexicon == nil {
			l.lexicon = lexicon.Default()
		}
		more, err := l.lexicon.Extend(item.text, text)
		if err != nil {
			l.fail(item.at, path, err.Error(), "helve lexicon check FILE tells all that is wrong")
			continue
		}
		l.lexicon = more
	}
}

// lexiconFile reads one of them.
func (l *loader) lexiconFile(item *node, path string) ([]byte, bool) {
	dir, rel, ok := l.within(item, path)
	if !ok {
		return nil, false
	}
	text, err := readWithin(dir, rel)
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("it has more than %d bytes", maxFile)
	}
	if err != nil {
		l.fail(item.at, path, fmt.Sprintf("%q cannot be read: %v", item.text, why(err)), "")
		return nil, false
	}
	l.words = append(l.words, filepath.Join(dir, rel))
	return text, true
}

// within returns the app's folder, and where in it something lies that the
// file names.
func (l *loader) within(item *node, path string) (dir, rel string, ok bool) {
	dir, name := filepath.Dir(l.file), filepath.FromSlash(item.text)
	rel, err := filepath.Rel(dir, filepath.Join(filepath.Dir(item.at.file), name))
	if err != nil || filepath.IsAbs(name) || strings.HasPrefix(item.text, "/") || !filepath.IsLocal(rel) {
		l.fail(item.at, path, fmt.Sprintf("%q leads out of the app's folder", item.text), "name a file inside it, relative to this file")
		return "", "", false
	}
	return dir, rel, true
}
