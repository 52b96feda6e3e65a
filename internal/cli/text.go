package cli

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/goccy/go-yaml"

	"drover"
)

// escapeJSON is JSON text in which what may steer a terminal is written as escapes. JSON has such characters in its strings alone, where both mean the same.
func escapeJSON(text []byte) []byte {
	if !bytes.ContainsFunc(text, drover.Steers) {
		return text
	}
	var escaped []byte
	for _, r := range string(text) {
		if !drover.Steers(r) {
			escaped = utf8.AppendRune(escaped, r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			escaped = fmt.Appendf(escaped, "\\u%04x", unit)
		}
	}
	return escaped
}

// jsonToYAML is JSON as YAML in which what may steer a terminal is written as escapes.
func jsonToYAML(text []byte) ([]byte, error) {
	var v any
	if err := yaml.UnmarshalWithOptions(text, &v, yaml.UseOrderedMap()); err != nil {
		return nil, err
	}
	return yaml.Marshal(quoteSteering(v))
}

// quotedText is text that YAML has in double quotes, with escapes.
type quotedText string

// MarshalYAML writes the text.
func (t quotedText) MarshalYAML() ([]byte, error) { return []byte(strconv.Quote(string(t))), nil }

// quoteSteering has texts quoted that may steer a terminal.
func quoteSteering(v any) any {
	switch v := v.(type) {
	case string:
		if strings.ContainsFunc(v, drover.Steers) {
			return quotedText(v)
		}
	case []any:
		for i := range v {
			v[i] = quoteSteering(v[i])
		}
	case yaml.MapSlice:
		for i := range v {
			v[i].Key, v[i].Value = quoteSteering(v[i].Key), quoteSteering(v[i].Value)
		}
	}
	return v
}

// age is a time span for people, of its two largest units.
func age(d time.Duration) string {
	s := int64(max(d, 0).Round(time.Second) / time.Second)
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm%ds", s/60, s%60)
	case s < 86400:
		return fmt.Sprintf("%dh%dm", s/3600, s%3600/60)
	}
	return fmt.Sprintf("%dd%dh", s/86400, s%86400/3600)
}

// ageOf is how long ago something was; empty if it never was.
func ageOf(t *time.Time) string {
	if t == nil || t.IsZero() {
		return ""
	}
	return age(time.Since(*t))
}

// stamp is a time for people; empty for none.
func stamp(t *time.Time) string {
	if t == nil || t.IsZero() {
		return ""
	}
	return t.Local().Format(time.DateTime)
}

// clock is the time of day of an instant, with its day if that is not today.
func clock(t drover.Time) string {
	local := t.Std().Local()
	if local.Format(time.DateOnly) == time.Now().Format(time.DateOnly) {
		return local.Format(time.TimeOnly)
	}
	return local.Format(time.DateTime)
}

// untilWords says when a reason will have changed at the latest, "; changes by 14:02:11, within 3m0s", or when a cloud that does not answer is
// asked again, after which it may be as it was. It is empty if that is not known, or is over.
func untilWords(r drover.Reason, now drover.Time) string {
	switch {
	case r.Until <= now:
		return ""
	case r.Code == drover.ReasonUnlisted, r.Code == drover.ReasonCatalogue:
		return fmt.Sprintf("; asked again at %s, in %s", clock(r.Until), age(r.Until.Sub(now)))
	}
	return fmt.Sprintf("; changes by %s, within %s", clock(r.Until), age(r.Until.Sub(now)))
}

// dollars is an amount of money that came as a number.
func dollars(usd float64) string { return drover.Money(usd * float64(drover.Dollar)).String() }

// size is a size for people.
func size(b drover.Bytes) string { return b.Rounded() }

// plural is a number of things.
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
