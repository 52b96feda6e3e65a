package kit

import (
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Labels write tags for a cloud whose labels accept less than a tag may hold. The mark and two hexadecimal digits
// replace each character that a label's value does not accept, and the mark itself. A value that is too long continues
// in further labels, whose keys end in the joint and 2, 3 and so on.
type Labels struct {
	Max   int // characters of a value
	Mark  byte
	Joint string
	Plain func(c byte, edge bool) bool // whether a value accepts a character, in the middle or as its first or last
}

// Write encodes tags as labels.
func (l Labels) Write(tags map[string]string) map[string]string {
	labels := map[string]string{}
	for key, value := range tags {
		for i, part := range l.parts(value) {
			labels[l.key(key, i)] = part
		}
	}
	return labels
}

func (l Labels) key(key string, i int) string {
	if i == 0 {
		return key
	}
	return key + l.Joint + strconv.Itoa(i+1)
}

// parts are the values of a tag's labels: at least one.
func (l Labels) parts(value string) (all []string) {
	var b strings.Builder
	for i := range len(value) {
		// A part may end after any character near its maximum length, so each of these is written as if it were the
		// last.
		edge := b.Len() == 0 || i == len(value)-1 || b.Len() >= l.Max-6
		b.WriteString(Escaped(value[i:i+1], l.Mark, func(c byte) bool { return c != l.Mark && l.Plain(c, edge) }))
		if b.Len() > l.Max-3 && i < len(value)-1 {
			all = append(all, b.String())
			b.Reset()
		}
	}
	return append(all, b.String())
}

// Read decodes labels into tags. Labels that Write did not write stay unchanged: anybody may label an instance.
func (l Labels) Read(labels map[string]string) map[string]string {
	tags := map[string]string{}
	for key, value := range labels {
		if first, n, ok := l.cut(key); ok {
			if _, has := labels[l.key(first, n-2)]; has {
				continue // read with the first
			}
		}
		tags[key] = l.text(value)
		for i := 1; ; i++ {
			part, ok := labels[l.key(key, i)]
			if !ok {
				break
			}
			tags[key] += l.text(part)
		}
	}
	return tags
}

// cut removes the number of a part from a key, if it has one.
func (l Labels) cut(key string) (first string, n int, ok bool) {
	at := strings.LastIndex(key, l.Joint)
	if at < 0 {
		return key, 0, false
	}
	n, err := strconv.Atoi(key[at+len(l.Joint):])
	return key[:at], n, err == nil && n >= 2
}

func (l Labels) text(value string) string {
	if text, ours := Unescaped(value, l.Mark); ours {
		return text
	}
	return value
}

// EachTag applies a function to every tag, in the order of the keys.
func EachTag[T any](tags map[string]string, become func(key, value string) T) (each []T) {
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		each = append(each, become(key, tags[key]))
	}
	return each
}

// Escaped encodes a text in the characters that a cloud's tags accept: it replaces any other with the mark and two
// hexadecimal digits. The mark itself must not be plain.
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

// Unescaped decodes what Escaped wrote. It returns false for a mark without its digits, which Escaped never writes.
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
