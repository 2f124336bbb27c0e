package schema

// rule is the part of a schema that is checked on the bytes themselves.
type rule struct {
	always bool
}

// accepts reports whether doc is surely valid. False says nothing.
func (c *compiled) accepts(doc []byte) bool { return false }
