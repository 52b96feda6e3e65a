package kit

import (
	"encoding/hex"
	"fmt"
	"strings"
)

// Escaped writes a text in those characters that a cloud's tags take: any other is the mark and its two hexadecimal digits. The mark itself is to
// be no plain one.
func Escaped(text string, mark byte, plain func(c byte) bool) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		if plain(c) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%c%02x", mark, c)
		}
	}
	return b.String()
}

// Unescaped reads what Escaped wrote. What has a mark without its digits was not written by it.
func Unescaped(text string, mark byte) (plain string, ok bool) {
	parts := strings.Split(text, string(mark))
	var b strings.Builder
	b.WriteString(parts[0])
	for _, part := range parts[1:] {
		if len(part) < 2 {
			return "", false
		}
		c, err := hex.DecodeString(part[:2])
		if err != nil {
			return "", false
		}
		b.Write(c)
		b.WriteString(part[2:])
	}
	return b.String(), true
}
