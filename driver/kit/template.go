package kit

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"drover"
)

// Template describes a user's raw template: JSON with the fields of the cloud's API.
type Template struct {
	Hint  string   // what it is, with an example
	Given []string // paths of the keys that Drover sets itself, such as properties.priority
	Use   string   // the hint for Given keys: which settings to use instead
	Keys  string   // for a template that is read into a map: JSON with every key and a value of its type; the key * stands for any
}

// Read decodes a template; an empty one sets nothing. Unknown fields, values of a wrong type and Given keys are
// KindInvalid.
func (t Template) Read(raw string, into any) error {
	if raw == "" {
		return nil
	}
	d := json.NewDecoder(strings.NewReader(raw))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	var wrote, example any
	if err == nil {
		err = json.Unmarshal([]byte(raw), &wrote)
	}
	if err != nil {
		return drover.Errorf(drover.KindInvalid, "read the template: %v", err).WithHint("%s", t.Hint)
	}
	for _, path := range t.Given {
		if has(wrote, strings.Split(path, ".")) {
			return drover.Errorf(drover.KindInvalid, "the template sets %s, which Drover sets for each instance", path).WithHint("%s", t.Use)
		}
	}
	if t.Keys != "" {
		if err := json.Unmarshal([]byte(t.Keys), &example); err != nil {
			return err
		}
		if key := misfit("", wrote, example); key != "" {
			return drover.Errorf(drover.KindInvalid, "read the template: %s is unknown, or its value has the wrong type", key).WithHint("%s", t.Hint)
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

// misfit returns the path of the first key that the example lacks or has with a value of another type; empty if there
// is none.
func misfit(path string, value, example any) string {
	if value == nil {
		return ""
	}
	if reflect.TypeOf(value) != reflect.TypeOf(example) {
		return path
	}
	switch value := value.(type) {
	case map[string]any:
		known := example.(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(value)) {
			of, ok := known[key]
			if !ok {
				of = known["*"]
			}
			if wrong := misfit(strings.TrimPrefix(path+"."+key, "."), value[key], of); wrong != "" {
				return wrong
			}
		}
	case []any:
		for _, one := range value {
			if wrong := misfit(path, one, example.([]any)[0]); wrong != "" {
				return wrong
			}
		}
	}
	return ""
}
