package root

// WithoutOpenat2 makes folders be opened component by component, as on kernels without openat2, until undo is called.
func WithoutOpenat2() (undo func()) {
	before := noOpenat2.Swap(true)
	return func() { noOpenat2.Store(before) }
}
