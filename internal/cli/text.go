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

// escapeJSON escapes characters in JSON text that may control a terminal. JSON has such characters only in its strings,
// where an escape means the same.
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

// jsonToYAML converts JSON to YAML, and escapes characters that may control a terminal.
func jsonToYAML(text []byte) ([]byte, error) {
	var v any
	if err := yaml.UnmarshalWithOptions(text, &v, yaml.UseOrderedMap()); err != nil {
		return nil, err
	}
	return yaml.Marshal(quoteSteering(v))
}

// quotedText is text that YAML writes in double quotes, with escapes.
type quotedText string

// MarshalYAML writes the text.
func (t quotedText) MarshalYAML() ([]byte, error) { return []byte(strconv.Quote(string(t))), nil }

// quoteSteering quotes texts that may control a terminal.
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
