package cli

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/goccy/go-yaml"

	"drover"
)

// escapeJSON is JSON text in which what may steer a terminal is written as escapes. JSON has such characters in its
// strings alone, where both mean the same.
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
