package record

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"drover/internal/engine"
)

// Mark summarizes a decision: enough to detect whether another is equal and, if not, how it differs.
type Mark struct {
	Digest  string `json:"d"`           // of the whole decision and, a byte each, of its parts
	Outline string `json:"k,omitempty"` // the kinds of its writes and, after a semicolon, of its effects: "attempt,element;2 start"
}

// parts are the parts of a decision, in the order of their bytes in a Digest.
var parts = [...]string{"writes", "effects", "notes", "wake"}

// whole is how many bytes of a Digest cover the whole decision.
const whole = 5

// JSON escapes a byte that is not UTF-8 as \ufffd, and reads it as U+FFFD, which it does not escape: both are the same
// text.
var escaped, replaced = []byte(`\ufffd`), []byte("\uFFFD")

// MarkOf makes the mark of a decision. Its JSON is canonical, since nothing in a decision is a map.
func MarkOf(d engine.Decision) (Mark, error) {
	all := sha256.New()
	var digest [whole + len(parts)]byte
	for i, part := range [...]any{d.Writes, d.Effects, d.Notes, d.Wake} {
		b, err := json.Marshal(part)
		if err != nil {
			return Mark{}, fmt.Errorf("encoding the %s of a decision: %w", parts[i], err)
		}
		sum := sha256.Sum256(bytes.ReplaceAll(b, escaped, replaced))
		all.Write(sum[:])
		digest[whole+i] = sum[0]
	}
	copy(digest[:whole], all.Sum(nil))
	return Mark{base64.RawURLEncoding.EncodeToString(digest[:]), outline(d)}, nil
}

// Differs returns the parts in which the decision of another mark differs; none if it is the same.
func (m Mark) Differs(other Mark) (names []string) {
	a, errA := base64.RawURLEncoding.DecodeString(m.Digest)
	b, errB := base64.RawURLEncoding.DecodeString(other.Digest)
	if m.Digest == other.Digest || errA != nil || errB != nil || len(a) != len(b) || len(a) != whole+len(parts) {
		return nil
	}
	for i, name := range parts {
		if a[whole+i] != b[whole+i] {
			names = append(names, name)
		}
	}
	return names
}

func outline(d engine.Decision) string {
	text := kinds(d.Writes)
	if len(d.Effects) > 0 {
		text += ";" + kinds(d.Effects)
	}
	return text
}

// kinds lists the kinds of a list's items, with a number for several of a kind in a row.
func kinds[T any](list []T) string {
	var names []string
	for i := 0; i < len(list); {
		name, n := KindOf(list[i]), 1
		for i+n < len(list) && KindOf(list[i+n]) == name {
			n++
		}
		if i += n; n > 1 {
			name = fmt.Sprint(n, " ", name)
		}
		names = append(names, name)
	}
	return strings.Join(names, ",")
}

// KindOf returns the kind of a write or an effect: the JSON name of the one field that is set besides its ID.
func KindOf(of any) string {
	v := reflect.ValueOf(of)
	for i := range v.NumField() {
		if f := v.Type().Field(i); f.Name != "ID" && !v.Field(i).IsZero() {
			return fieldName(f)
		}
	}
	return ""
}

// fieldName returns a field's JSON name.
func fieldName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}
