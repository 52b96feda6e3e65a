package config

import (
	"cmp"
	"crypto/sha256"
	"encoding"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"drover"
)

// Changes returns the keys whose values another configuration changes. As in [Config.Hash], comments, order and
// written-out defaults make no difference. A driver's own keys are compared as they are written, since only the driver
// has their defaults.
func (c *Config) Changes(to *Config) []drover.ConfigChange {
	d := &differ{}
	d.structure("", reflect.ValueOf(c.read), reflect.ValueOf(to.read), c.root, to.root)
	d.clouds(c, to)
	slices.SortFunc(d.changes, func(a, b drover.ConfigChange) int { return strings.Compare(a.Key, b.Key) })
	return d.changes
}

// differ compares two configurations key by key.
type differ struct{ changes []drover.ConfigChange }

func (d *differ) add(key, from, to string) {
	d.changes = append(d.changes, drover.ConfigChange{Key: key, From: from, To: to})
}

// structure compares two structs of one type by their keys.
func (d *differ) structure(key string, a, b reflect.Value, an, bn *node) {
	for _, f := range fieldsOf(a.Type()) {
		if f.typ == reflect.TypeFor[map[string]cloudNode]() {
			continue // see clouds
		}
		d.value(keyPath(key, f.name), a.FieldByIndex(f.index), b.FieldByIndex(f.index), an.given(f.name), bn.given(f.name))
	}
}

// value compares two values of one type, recursively while both are mappings.
func (d *differ) value(key string, a, b reflect.Value, an, bn *node) {
	switch {
	case reflect.DeepEqual(a.Interface(), b.Interface()):
	case a.Kind() == reflect.Pointer && !a.IsNil() && !b.IsNil():
		d.value(key, a.Elem(), b.Elem(), an, bn)
	case a.Kind() == reflect.Struct && isMapping(a.Type()):
		d.structure(key, a, b, an, bn)
	case a.Kind() == reflect.Map && !isWord(a.Type()):
		d.dictionary(key, a, b, an, bn)
	default:
		d.add(key, shownValue(a, an), shownValue(b, bn))
	}
}

// dictionary compares mappings whose keys the writer chooses.
func (d *differ) dictionary(key string, a, b reflect.Value, an, bn *node) {
	all := map[string]reflect.Value{}
	for _, k := range slices.Concat(a.MapKeys(), b.MapKeys()) {
		all[k.String()] = k
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		from, to := a.MapIndex(all[name]), b.MapIndex(all[name])
		if from.IsValid() && to.IsValid() {
			d.value(keyPath(key, name), from, to, an.given(name), bn.given(name))
		} else {
			d.add(keyPath(key, name), an.given(name).shown(), bn.given(name).shown())
		}
	}
}

// clouds compares the clouds: the common keys by value, the drivers' own keys as they are written.
func (d *differ) clouds(a, b *Config) {
	names := append(a.CloudNames(), b.CloudNames()...)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		from, to := a.Cloud(name), b.Cloud(name)
		key, an, bn := keyPath("clouds", name), a.root.given("clouds").given(name), b.root.given("clouds").given(name)
		if from == nil || to == nil {
			d.add(key, an.shown(), bn.shown())
			continue
		}
		d.structure(key, reflect.ValueOf(from.Common), reflect.ValueOf(to.Common), an, bn)
		d.written(key, from.own, to.own)
	}
}

// written compares pieces of two files as they are written.
func (d *differ) written(key string, a, b *node) {
	switch {
	case digest(a) == digest(b):
	case a != nil && b != nil && a.shape == mapping && b.shape == mapping:
		seen := map[string]bool{}
		for _, e := range slices.Concat(a.entries, b.entries) {
			if name := e.key.text; !seen[name] {
				seen[name] = true
				d.written(keyPath(key, name), a.given(name), b.given(name))
			}
		}
	default:
		d.add(key, a.shown(), b.shown())
	}
}

// given returns the value that is written under a key; nil if there is none, or it is null.
func (n *node) given(key string) *node {
	if n == nil {
		return nil
	}
	if v := n.get(key); v != nil && v.shape != absent {
		return v
	}
	return nil
}

func keyPath(key, name string) string {
	if key == "" {
		return name
	}
	return key + "." + name
}

// isMapping reports whether a struct type is written as a mapping of its keys.
func isMapping(t reflect.Type) bool { return !isWord(t) && len(fieldsOf(t)) > 0 }

// isWord reports whether a type decodes itself, or is written as a single value.
func isWord(t reflect.Type) bool {
	_, scalar := scalarOf(t)
	p := reflect.PointerTo(t)
	return scalar || p.Implements(reflect.TypeFor[custom]()) || p.Implements(reflect.TypeFor[word]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// mostShown is how many characters of a value are shown.
const mostShown = 300

// shownValue returns a value as it is written, or else the text of its default. A file that is read with the
// configuration shows its hash.
func shownValue(v reflect.Value, n *node) string {
	if file, is := v.Interface().(FileText); is && file.Text != "" {
		return fmt.Sprintf("%s (%.8x)", cmp.Or(n.shown(), string(file.Path)), sha256.Sum256([]byte(file.Text)))
	}
	if n != nil {
		return n.shown()
	}
	if v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	switch value := v.Interface().(type) {
	case time.Duration:
		return shortDuration(value)
	case drover.Secret:
		if value.Reveal() == "" {
			return ""
		}
		return value.String()
	case fmt.Stringer:
		return value.String()
	}
	switch {
	case v.Kind() == reflect.Bool, v.CanInt(), v.CanUint(), v.Kind() == reflect.String:
		return fmt.Sprint(v.Interface())
	}
	return ""
}

// shortDuration formats a duration without its zero units.
func shortDuration(d time.Duration) string {
	text := d.String()
	for _, nothing := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, nothing) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// shown returns a node's text in one line and without secrets; empty for nil.
func (n *node) shown() string {
	if n == nil {
		return ""
	}
	text := []rune(n.flow())
	if len(text) > mostShown {
		text = append(text[:mostShown], '…')
	}
	return string(text)
}

func (n *node) flow() string {
	var parts []string
	switch n.shape {
	case list:
		for _, item := range n.items {
			parts = append(parts, item.flow())
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case mapping:
		for _, e := range n.entries {
			parts = append(parts, e.key.text+": "+e.value.flow())
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case scalar:
		return hideSecrets(n.text)
	}
	return "null"
}

// hideSecrets removes a secret's source and a URL's password from a value.
func hideSecrets(text string) string {
	if _, err := parseSecret(text); err == nil {
		return drover.Secret{}.String()
	}
	if u, err := url.Parse(text); err == nil && u.User != nil {
		u.User = url.User(drover.Secret{}.String())
		text = strings.Replace(u.String(), url.PathEscape(drover.Secret{}.String()), drover.Secret{}.String(), 1)
	}
	return text
}
