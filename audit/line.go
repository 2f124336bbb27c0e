package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"
)

// A digest is a SHA-256 in hexadecimal, as it stands in a line.
type digest [2 * sha256.Size]byte

// genesis is the prev of the first line.
var genesis = digest(bytes.Repeat([]byte{'0'}, 2*sha256.Size))

const (
	seqKey  = `{"seq":`
	timeKey = `,"time":"`
	prevKey = `,"prev":"`
	hashKey = `,"hash":"`
	lineEnd = "\"}\n"
	// hashLen is the length of the hash key with its value and the line's end.
	hashLen = len(hashKey) + len(digest{}) + len(lineEnd)
)

// appendLine appends the line that tells of e, its line feed included, and
// returns its hash. A time that RFC 3339 cannot tell is replaced by now.
func appendLine(dst []byte, e *Entry, seq uint64, prev digest, now time.Time) ([]byte, digest) {
	start := len(dst)
	dst = append(dst, seqKey...)
	dst = strconv.AppendUint(dst, seq, 10)
	at := e.Time.UTC()
	if e.Time.IsZero() || at.Year() < 0 || at.Year() > 9999 {
		at = now.UTC()
	}
	dst = append(dst, timeKey...)
	dst = at.AppendFormat(dst, time.RFC3339Nano)
	dst = append(dst, '"')
	dst = appendFields(dst, e)
	dst = append(dst, prevKey...)
	dst = append(dst, prev[:]...)
	dst = append(dst, '"')

	sum := sha256.Sum256(dst[start:])
	var hash digest
	hex.Encode(hash[:], sum[:])
	dst = append(dst, hashKey...)
	dst = append(dst, hash[:]...)
	return append(dst, lineEnd...), hash
}

func appendFields(dst []byte, e *Entry) []byte {
	dst = appendText(dst, "app", e.App)
	dst = appendText(dst, "agent", e.Agent)
	dst = appendText(dst, "session", e.Session)
	dst = appendText(dst, "user", e.User)
	dst = appendText(dst, "kind", e.Kind)
	dst = appendText(dst, "call", e.Call)
	dst = appendText(dst, "parent", e.Parent)
	dst = appendTexts(dst, "via", e.Via)
	dst = appendText(dst, "tool", e.Tool)
	dst = appendText(dst, "effect", e.Effect)
	dst = appendArgs(dst, e.Args)
	dst = appendText(dst, "decision", e.Decision)
	dst = appendText(dst, "stage", e.Stage)
	dst = appendText(dst, "reason", e.Reason)
	dst = appendText(dst, "approver", e.Approver)
	dst = appendInt(dst, "duration_ns", int64(e.Duration))
	dst = appendInt(dst, "result_bytes", int64(e.ResultBytes))
	dst = appendText(dst, "result_digest", e.ResultDigest)
	dst = appendText(dst, "error", e.Error)
	dst = appendCost(dst, e.Cost)
	dst = appendTexts(dst, "notes", e.Notes)
	if e.Truncated {
		dst = append(appendKey(dst, "truncated"), "true"...)
	}
	return dst
}

func appendKey(dst []byte, key string) []byte {
	dst = append(dst, ',', '"')
	dst = append(dst, key...)
	return append(dst, '"', ':')
}

func appendText(dst []byte, key, s string) []byte {
	if s == "" {
		return dst
	}
	return appendString(appendKey(dst, key), s)
}

func appendTexts(dst []byte, key string, list []string) []byte {
	if len(list) == 0 {
		return dst
	}
	dst = append(appendKey(dst, key), '[')
	for i, s := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendString(dst, s)
	}
	return append(dst, ']')
}

func appendInt(dst []byte, key string, n int64) []byte {
	if n == 0 {
		return dst
	}
	return strconv.AppendInt(appendKey(dst, key), n, 10)
}

func appendCost(dst []byte, c Cost) []byte {
	if c == (Cost{}) {
		return dst
	}
	dst = append(appendKey(dst, "cost"), '{')
	if c.Tokens != 0 {
		dst = append(dst, `"tokens":`...)
		dst = strconv.AppendInt(dst, int64(c.Tokens), 10)
	}
	if c.Money != "" {
		if c.Tokens != 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `"money":`...)
		dst = appendString(dst, c.Money)
	}
	return append(dst, '}')
}

func appendArgs(dst, args []byte) []byte {
	if len(args) == 0 {
		return dst
	}
	dst = appendKey(dst, "args")
	if out, ok := appendCompact(dst, args); ok {
		return out
	}
	return appendString(dst, args)
}

// A link is what the chain needs to know of a line.
type link struct {
	seq        uint64
	prev, hash digest
	time       []byte
	sound      bool // hash is that of the line's bytes
}

// parseLine reads a line with its line feed; ok is false if it is none of ours.
func parseLine(line []byte) (k link, ok bool) {
	if !bytes.HasSuffix(line, []byte(lineEnd)) || len(line) < hashLen+len(prevKey)+len(digest{})+1 {
		return k, false
	}
	body, tail := line[:len(line)-hashLen], line[len(line)-hashLen:]
	prev, quoted := bytes.CutSuffix(body, []byte{'"'})
	if !quoted || !bytes.HasPrefix(tail, []byte(hashKey)) {
		return k, false
	}
	prev = prev[len(prev)-len(prevKey)-len(digest{}):]
	if !bytes.HasPrefix(prev, []byte(prevKey)) {
		return k, false
	}
	copy(k.prev[:], prev[len(prevKey):])
	copy(k.hash[:], tail[len(hashKey):])

	rest, ours := bytes.CutPrefix(body, []byte(seqKey))
	digits, rest, timed := bytes.Cut(rest, []byte(timeKey))
	at, _, closed := bytes.Cut(rest, []byte{'"'})
	seq, err := strconv.ParseUint(string(digits), 10, 64)
	if !ours || !timed || !closed || err != nil {
		return k, false
	}
	k.seq, k.time = seq, at
	sum := sha256.Sum256(body)
	var hash digest
	hex.Encode(hash[:], sum[:])
	k.sound = hash == k.hash
	return k, true
}
