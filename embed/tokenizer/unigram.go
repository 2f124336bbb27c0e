package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"
)

// unknownPenalty is how much an unknown character costs more than the least
// likely piece.
const unknownPenalty = 10

// unigram splits text into the pieces that are likeliest together.
type unigram struct {
	ids          map[string]int32
	scores       []float64
	longest      int   // bytes of a piece
	unknown      int32 // below zero: there is none
	unknownScore float64
	bytes        *[256]int32 // pieces for single bytes; nil: unknown characters stay so
}

// A scored piece is ["text", score].
type scored struct {
	text  string
	score float64
}

// UnmarshalJSON takes the two apart by itself where that is easy: there are
// hundreds of thousands. data is valid JSON.
func (s *scored) UnmarshalJSON(data []byte) (err error) {
	comma := bytes.LastIndexByte(data, ',')
	if comma > 3 && data[0] == '[' && data[1] == '"' && data[comma-1] == '"' && bytes.IndexByte(data, '\\') < 0 {
		s.text = string(data[2 : comma-1])
		s.score, err = strconv.ParseFloat(string(bytes.TrimSpace(data[comma+1:len(data)-1])), 64)
		return err
	}
	return json.Unmarshal(data, &[2]any{&s.text, &s.score})
}

func parseUnigram(data json.RawMessage) (model, error) {
	var f struct {
		Vocab    []scored `json:"vocab"`
		Unknown  *int32   `json:"unk_id"`
		Fallback bool     `json:"byte_fallback"`
	}
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, err
	}
	if len(f.Vocab) == 0 {
		return nil, errors.New("the vocabulary is empty")
	}
	u := &unigram{ids: make(map[string]int32, len(f.Vocab)), scores: make([]float64, len(f.Vocab)), unknown: -1}
	least := math.Inf(1)
	for i, p := range f.Vocab {
		u.ids[p.text], u.scores[i] = int32(i), p.score
		u.longest, least = max(u.longest, len(p.text)), min(least, p.score)
	}
	u.unknownScore = least - unknownPenalty
	if f.Unknown != nil {
		if *f.Unknown < 0 || int(*f.Unknown) >= len(f.Vocab) {
			return nil, fmt.Errorf("unk_id %d is not in the vocabulary", *f.Unknown)
		}
		u.unknown = *f.Unknown
	}
	if f.Fallback {
		u.bytes = u.byteIDs()
	}
	return u, nil
}

// byteIDs returns the pieces <0x00> to <0xFF>, below zero those that there are not.
func (u *unigram) byteIDs() *[256]int32 {
	var out [256]int32
	for b := range out {
		id, ok := u.ids[fmt.Sprintf("<0x%02X>", b)]
		if !ok {
			id = -1
		}
		out[b] = id
	}
	return &out
}

func (u *unigram) size() int { return len(u.scores) }

// A node is the best way to split the text up to a place.
type node struct {
	score float64
	from  int   // where its last piece begins
	id    int32 // that piece; -1: unknown
	known bool  // there is a way
}

func (u *unigram) encode(ids []int32, text string) []int32 {
	nodes := make([]node, len(text)+1)
	for at := 0; at < len(text); {
		_, n := utf8.DecodeRuneInString(text[at:])
		u.extend(nodes, text, at, n)
		at += n
	}
	return u.collect(ids, text, nodes)
}

// extend tries every piece at a place, and a character of n bytes that is
// unknown where no piece is that character.
func (u *unigram) extend(nodes []node, text string, at, n int) {
	single := false
	for end := at + n; end <= len(text) && end-at <= u.longest; {
		if id, ok := u.ids[text[at:end]]; ok {
			nodes[end].offer(nodes[at].score+u.scores[id], at, id)
			single = single || end == at+n
		}
		if end == len(text) {
			break
		}
		_, more := utf8.DecodeRuneInString(text[end:])
		end += more
	}
	if !single {
		nodes[at+n].offer(nodes[at].score+u.unknownScore, at, -1)
	}
}

func (n *node) offer(score float64, from int, id int32) {
	if !n.known || score > n.score {
		*n = node{score, from, id, true}
	}
}

// collect walks back over the best way. Unknown characters side by side are one token.
func (u *unigram) collect(ids []int32, text string, nodes []node) []int32 {
	began := len(ids)
	for end := len(text); end > 0; {
		from := nodes[end].from
		if id := nodes[end].id; id >= 0 && id != u.unknown {
			ids = append(ids, id)
			end = from
			continue
		}
		for from > 0 && (nodes[from].id < 0 || nodes[from].id == u.unknown) {
			from = nodes[from].from
		}
		ids = u.appendUnknown(ids, text[from:end])
		end = from
	}
	reverse(ids[began:])
	return ids
}

// appendUnknown appends, in reverse, what stands for text that no piece fits.
func (u *unigram) appendUnknown(ids []int32, text string) []int32 {
	if id, ok := u.ids[text]; ok {
		return append(ids, id)
	}
	if u.bytes != nil {
		began := len(ids)
		for i := len(text) - 1; i >= 0; i-- {
			if u.bytes[text[i]] < 0 {
				ids = ids[:began]
				break
			}
			ids = append(ids, u.bytes[text[i]])
		}
		if len(ids) > began {
			return ids
		}
	}
	if u.unknown >= 0 {
		ids = append(ids, u.unknown)
	}
	return ids
}

func reverse(ids []int32) {
	for i, j := 0, len(ids)-1; i < j; i, j = i+1, j-1 {
		ids[i], ids[j] = ids[j], ids[i]
	}
}
