package lexicon

// An Entry is a word or phrase of the data.
type Entry struct {
	Lang      string // ISO 639-1
	Text      string
	Ambiguous bool // counts half
}

// Entries returns the words of a concept as the data files have them, in the
// order of the languages. It reads the files, and is for listings.
func (l *Lexicon) Entries(id ID) ([]Entry, error) {
	var words [langCount][]Entry
	for _, s := range l.sources {
		files, err := s.read()
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			for _, c := range f.concepts {
				if c.name != l.names[id] {
					continue
				}
				for lang, list := range c.words {
					for _, e := range list {
						words[lang] = append(words[lang], Entry{codes[lang], e.text, e.ambiguous})
					}
				}
			}
		}
	}
	var out []Entry
	for _, list := range words {
		out = append(out, list...)
	}
	return out, nil
}
