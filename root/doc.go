// Package root is the one folder that calls may touch: it resolves paths as the kernel would and applies the ignore rules.
//
// A name given by a model goes through [Root.Resolve], which walks it component by component, follows links that stay
// inside, refuses whatever leaves, and judges the place it arrives at by the rules in .helveignore and .helveprotect.
// What was judged is then opened by the file operations of [Root], which follow no link at all: a folder that is
// swapped for a link between judging and opening is refused, not followed.
package root
