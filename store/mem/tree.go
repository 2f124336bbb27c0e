package mem

import (
	"cmp"
	"math/rand/v2"
)

// id is what a value is found by, in the order of buckets, then keys.
type id struct{ bucket, key string }

func (a id) compare(b id) int {
	return cmp.Or(cmp.Compare(a.bucket, b.bucket), cmp.Compare(a.key, b.key))
}

// A node is the root of a treap: a search tree by id whose nodes are a heap by
// rank, and, since ranks are random, about as high as a balanced one. nil is
// the empty tree. Nodes do not change once made; put and remove return a tree
// that shares most of them.
type node struct {
	id
	value       []byte
	rank        uint64
	left, right *node
}

func (n *node) find(want id) *node {
	for n != nil {
		switch c := want.compare(n.id); {
		case c == 0:
			return n
		case c < 0:
			n = n.left
		default:
			n = n.right
		}
	}
	return nil
}

// ascend calls yield for the nodes from the id on, in order, until it returns
// false, which is what it returns then.
func (n *node) ascend(from id, yield func(*node) bool) bool {
	if n == nil {
		return true
	}
	if n.compare(from) < 0 {
		return n.right.ascend(from, yield)
	}
	return n.left.ascend(from, yield) && yield(n) && n.right.ascend(from, yield)
}

func (n *node) with(left, right *node) *node {
	return &node{n.id, n.value, n.rank, left, right}
}

func (n *node) put(at id, value []byte) *node {
	if old := n.find(at); old != nil {
		return n.set(at, value)
	}
	return n.insert(&node{id: at, value: value, rank: rand.Uint64()})
}

// set replaces the value of an id that is there.
func (n *node) set(at id, value []byte) *node {
	switch c := at.compare(n.id); {
	case c < 0:
		return n.with(n.left.set(at, value), n.right)
	case c > 0:
		return n.with(n.left, n.right.set(at, value))
	}
	return &node{n.id, value, n.rank, n.left, n.right}
}

// insert adds a node whose id is not there. It may change add, which is new.
func (n *node) insert(add *node) *node {
	if n == nil {
		return add
	}
	if add.rank > n.rank {
		add.left, add.right = n.split(add.id)
		return add
	}
	if add.compare(n.id) < 0 {
		return n.with(n.left.insert(add), n.right)
	}
	return n.with(n.left, n.right.insert(add))
}

// split returns the nodes before the id, and those after.
func (n *node) split(at id) (before, after *node) {
	if n == nil {
		return nil, nil
	}
	if n.compare(at) < 0 {
		before, after = n.right.split(at)
		return n.with(n.left, before), after
	}
	before, after = n.left.split(at)
	return before, n.with(after, n.right)
}

func (n *node) remove(at id) *node {
	if n.find(at) == nil {
		return n
	}
	return n.cut(at)
}

// cut removes an id that is there.
func (n *node) cut(at id) *node {
	switch c := at.compare(n.id); {
	case c < 0:
		return n.with(n.left.cut(at), n.right)
	case c > 0:
		return n.with(n.left, n.right.cut(at))
	}
	return merge(n.left, n.right)
}

// merge joins two trees, all of the first before all of the second.
func merge(a, b *node) *node {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	case a.rank > b.rank:
		return a.with(a.left, merge(a.right, b))
	}
	return b.with(merge(a, b.left), b.right)
}
