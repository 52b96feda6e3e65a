package kit

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"drover"
)

// Template describes a user's raw template: JSON with the fields of the cloud's API.
type Template struct {
	Hint  string   // what it is, with an example
	Given []string // paths of the keys that Drover sets itself, such as properties.priority
	Use   string   // the hint for these: which settings to use instead
}

// Read decodes a template; an empty one sets nothing. Unknown fields and Given keys are KindInvalid.
func (t Template) Read(raw string, into any) error {
	if raw == "" {
		return nil
	}
	d := json.NewDecoder(strings.NewReader(raw))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	var wrote any
	if err == nil {
		err = json.Unmarshal([]byte(raw), &wrote)
	}
	if _, itself := into.(json.Unmarshaler); itself && err == nil { // its own method ignores unknown fields
		err = unread(wrote, into)
	}
	if err != nil {
		return drover.Errorf(drover.KindInvalid, "read the template: %v", err).WithHint("%s", t.Hint)
	}
	for _, path := range t.Given {
		if has(wrote, strings.Split(path, ".")) {
			return drover.Errorf(drover.KindInvalid, "the template sets %s, which Drover sets for each instance", path).WithHint("%s", t.Use)
		}
	}
	return nil
}

// has reports whether a value is set at a path of keys. Like decoding, it ignores case.
func has(value any, path []string) bool {
	if len(path) == 0 {
		return value != nil && value != false
	}
	switch value := value.(type) {
	case map[string]any:
		for key, within := range value {
			if strings.EqualFold(key, path[0]) && has(within, path[1:]) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(value, func(one any) bool { return has(one, path) })
	}
	return false
}

// unread returns an error if the JSON has a key that was lost in decoding.
func unread(wrote, into any) error {
	var read any
	text, err := json.Marshal(into)
	if err = errors.Join(err, json.Unmarshal(text, &read)); err != nil {
		return err
	}
	if key := surplus(wrote, read); key != "" {
		return errors.New("unknown field " + key)
	}
	return nil
}

// surplus returns the path of a key that only the first value has.
func surplus(one, other any) string {
	switch one := one.(type) {
	case map[string]any:
		known, _ := other.(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(one)) {
			within, ok := known[key]
			if !ok && one[key] != nil {
				return key
			}
			if rest := surplus(one[key], within); rest != "" {
				return key + "." + rest
			}
		}
	case []any:
		known, _ := other.([]any)
		for i := range min(len(one), len(known)) {
			if rest := surplus(one[i], known[i]); rest != "" {
				return rest
			}
		}
	}
	return ""
}
