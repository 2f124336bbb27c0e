package files

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
)

// An Encoding is how a text stands in a file.
type Encoding string

// The encodings that are told from the bytes.
const (
	UTF8    Encoding = "UTF-8"
	UTF8BOM Encoding = "UTF-8 with a byte order mark"
	UTF16LE Encoding = "UTF-16 (little-endian)"
	UTF16BE Encoding = "UTF-16 (big-endian)"
	Latin1  Encoding = "ISO 8859-1 (Latin-1)"
)

const bom = "\ufeff"

// Decode returns the text in data, which may be in any of the encodings that
// can be told from the bytes. It is not ok if data is not text.
func Decode(data []byte) (text string, enc Encoding, ok bool) {
	switch {
	case bytes.HasPrefix(data, []byte(bom)):
		rest := data[len(bom):]
		return string(rest), UTF8BOM, utf8.Valid(rest) && !isBinary(rest)
	case bytes.HasPrefix(data, []byte{0xff, 0xfe}):
		return decode16(data, binary.LittleEndian, UTF16LE)
	case bytes.HasPrefix(data, []byte{0xfe, 0xff}):
		return decode16(data, binary.BigEndian, UTF16BE)
	case isBinary(data):
		return "", "", false
	case utf8.Valid(data):
		return string(data), UTF8, true
	case !latin(data):
		return "", "", false
	}
	runes := make([]rune, len(data))
	for i, b := range data {
		runes[i] = rune(b)
	}
	return string(runes), Latin1, true
}

func decode16(data []byte, order binary.ByteOrder, enc Encoding) (string, Encoding, bool) {
	if len(data)%2 != 0 {
		return "", "", false
	}
	units := make([]uint16, 0, len(data)/2-1)
	for i := 2; i < len(data); i += 2 {
		units = append(units, order.Uint16(data[i:]))
	}
	text := string(utf16.Decode(units))
	return text, enc, !strings.ContainsRune(text, 0)
}

// isBinary reports whether data holds what no text holds, or has the shape of
// a known format that is not text.
func isBinary(data []byte) bool {
	if bytes.IndexByte(data, 0) >= 0 {
		return true
	}
	kind := http.DetectContentType(data)
	switch major, _, _ := strings.Cut(kind, "/"); major {
	case "image", "audio", "video", "font":
		return !utf8.Valid(data)
	}
	switch kind {
	case "application/pdf", "application/zip", "application/x-gzip", "application/x-rar-compressed", "application/wasm":
		return true
	}
	return false
}

// latin reports whether data may be text in a character set of one byte: it has
// no control characters but white space, and more ASCII than anything else.
func latin(data []byte) bool {
	high := 0
	for _, b := range data {
		switch {
		case b < ' ' && !strings.ContainsRune("\t\n\v\f\r\x1b\b", rune(b)), b == 0x7f:
			return false
		case b >= 0x80:
			high++
		}
	}
	return high*2 < len(data)
}

// Encode returns text in the encoding.
func (e Encoding) Encode(text string) ([]byte, error) {
	switch e {
	case UTF8BOM:
		return []byte(bom + text), nil
	case UTF16LE:
		return encode16(text, binary.LittleEndian), nil
	case UTF16BE:
		return encode16(text, binary.BigEndian), nil
	case Latin1:
		out := make([]byte, 0, len(text))
		for _, r := range text {
			if r > 0xff {
				return nil, fmt.Errorf("the file is in %s, which has no %q; write the whole file instead, which makes it UTF-8", e, r)
			}
			out = append(out, byte(r))
		}
		return out, nil
	}
	return []byte(text), nil
}

func encode16(text string, order binary.AppendByteOrder) []byte {
	units := utf16.Encode([]rune(bom + text))
	out := make([]byte, 0, 2*len(units))
	for _, u := range units {
		out = order.AppendUint16(out, u)
	}
	return out
}

// decodeAs returns the text in data, which is in the encoding of that name.
func decodeAs(data []byte, name string) (string, error) {
	enc, err := encodingNamed(name)
	if err != nil {
		return "", err
	}
	out, err := enc.NewDecoder().Bytes(data)
	if err != nil {
		return "", fmt.Errorf("the file cannot be read as %s: %w", name, err)
	}
	return strings.TrimPrefix(strings.ToValidUTF8(string(out), "\uFFFD"), bom), nil
}

func encodingNamed(name string) (encoding.Encoding, error) {
	enc, err := htmlindex.Get(name)
	if err != nil {
		return nil, fmt.Errorf("the encoding %q is not known; use a name such as utf-8, utf-16le, iso-8859-1, windows-1252, shift_jis or gbk", name)
	}
	return enc, nil
}

// MIME returns the type of data that is not text, judging by its bytes.
func MIME(data []byte) string {
	kind, _, _ := strings.Cut(http.DetectContentType(data), ";")
	return kind
}
