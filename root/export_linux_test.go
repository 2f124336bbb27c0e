package root

// WithoutOpenat2 makes folders be opened component by component, as on kernels without openat2, until undo is called.
func WithoutOpenat2() (undo func()) {
	before := noOpenat2.Swap(true)
	return func() { noOpenat2.Store(before) }
}

// WithoutProc leaves out the question where an open file lies, as on systems without /proc: what remains is that no
// link is followed.
func (r *Root) WithoutProc() { r.proc = false }
