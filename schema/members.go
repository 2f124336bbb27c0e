package schema

import "encoding/json"

// Members gives the values of an object that has no other members than keys,
// each at most once, in the order of keys; nil for one that is missing. They
// are parts of doc. It reports false for every other document, and for some
// that are right but unusual: keys with escapes, more than 100 levels.
func Members(doc []byte, keys []string, values []json.RawMessage) bool {
	clear(values)
	s := scanner{doc: doc, depth: maxScanDepth, loose: true}
	i := skipSpace(doc, 0)
	if i >= len(doc) || doc[i] != '{' {
		return false
	}
	i, more := s.open(i, '}')
	for more {
		start := i
		var end int
		var plain, ok bool
		if i, end, plain, ok = s.key(i); !ok || !plain {
			return false
		}
		at := -1
		for n, key := range keys {
			if string(doc[start+1:end-1]) == key {
				at = n
			}
		}
		begin := i
		if i, ok = s.skip(i); !ok || at < 0 || values[at] != nil {
			return false
		}
		values[at] = doc[begin:i:i]
		if i, more, ok = s.next(i, '}'); !ok {
			return false
		}
	}
	return skipSpace(doc, i) == len(doc)
}
