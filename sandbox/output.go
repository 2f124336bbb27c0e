package sandbox

// Output keeps the beginning and the end of a stream, half of its room each.
type Output struct {
	half       int
	head, tail []byte
	total      int
}

// newOutput returns an Output that keeps so many bytes.
func newOutput(room int) *Output { return &Output{half: room / 2} }

// Write never fails, so that a command is not ended by what it prints.
func (o *Output) Write(p []byte) (int, error) {
	n := len(p)
	o.total += n
	fits := min(n, o.half-len(o.head))
	o.head, p = append(o.head, p[:fits]...), p[fits:]
	if len(p) > o.half {
		p = p[len(p)-o.half:]
	}
	o.tail = append(o.tail, p...)
	if len(o.tail) > 2*o.half {
		o.tail = append(o.tail[:0], o.tail[len(o.tail)-o.half:]...)
	}
	return n, nil
}

// Total returns how many bytes were written.
func (o *Output) Total() int { return o.total }

// Kept returns at most so many bytes of the stream: all of it with cut zero,
// else its beginning and its end, between which cut bytes are left out.
func (o *Output) Kept(most int) (head, tail []byte, cut int) {
	if o.total <= min(most, 2*o.half) {
		return append(o.head[:len(o.head):len(o.head)], o.tail...), nil, 0
	}
	half := min(most/2, o.half)
	head = o.head[:min(half, len(o.head))]
	tail = o.tail
	if len(tail) < half { // the end lies in both
		tail = append(o.head[len(head):len(o.head):len(o.head)], tail...)
	}
	tail = tail[max(0, len(tail)-half):]
	return head, tail, o.total - len(head) - len(tail)
}
