package config

import (
	"encoding"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"

	"drover"
)

// custom is a type that decodes itself, because it can be written in more than one form.
type custom interface{ decode(d *decoder, n *node) }

// word is a type that decodes itself from a single value.
type word interface{ decodeWord(d *decoder, n *node) }

// abridged is a mapping that people write as a single value; instead returns what to write.
type abridged interface{ instead(text string) string }

// checked is a type whose values are checked against each other after decoding; its error is reported at the start of
// the mapping.
type checked interface{ Check() error }

// decoder decodes nodes into Go values and records faults. A value with a fault keeps its previous content.
type decoder struct {
	*faults
	dir       string   // the folder that relative paths start from
	elsewhere bool     // the writer's files are on another host
	others    []string // keys that another reader accepts, for "did you mean"
	keys      map[reflect.Type][]field
}

// fieldsOf caches the function of the same name: a batch has very many values of few types.
func (d *decoder) fieldsOf(t reflect.Type) []field {
	fields, known := d.keys[t]
	if known {
		return fields
	}
	if d.keys == nil {
		d.keys = map[reflect.Type][]field{}
	}
	d.keys[t] = fieldsOf(t)
	return d.keys[t]
}

// value decodes n into v. It rejects null; a mapping omits null keys before this call.
func (d *decoder) value(n *node, v reflect.Value, f field) {
	if c, ok := v.Addr().Interface().(custom); ok {
		c.decode(d, n)
		return
	}
	if w, ok := v.Addr().Interface().(word); ok {
		if d.want(n, scalar) {
			w.decodeWord(d, n)
		}
		return
	}
	if s, ok := scalarOf(v.Type()); ok {
		d.scalar(n, v, s)
		return
	}
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		d.text(n, u)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.value(n, v.Elem(), f)
	case reflect.Struct:
		d.structure(n, v)
	case reflect.Slice:
		d.slice(n, v, f)
	case reflect.Map:
		d.dictionary(n, v, f)
	case reflect.String:
		if d.want(n, scalar) {
			v.SetString(n.text)
		}
	case reflect.Bool:
		d.boolean(n, v)
	case reflect.Int, reflect.Int32, reflect.Int64:
		d.integer(n, v, f)
	case reflect.Uint32, reflect.Uint64:
		d.unsigned(n, v)
	case reflect.Float64:
		d.float(n, v)
	default:
		panic(fmt.Sprintf("config: no way to read a %v", v.Type()))
	}
}

// want reports a fault if n does not have the shape.
func (d *decoder) want(n *node, s shape) bool {
	if n.shape == s {
		return true
	}
	hint := ""
	if s == scalar && n.shape == absent {
		hint = `write "" for an empty string`
	}
	d.add(n, fmt.Sprintf("expected %s, not %s", s, n.shape), hint)
	return false
}

// structure decodes a mapping into a struct.
func (d *decoder) structure(n *node, v reflect.Value) {
	if def, ok := v.Addr().Interface().(defaulter); ok {
		def.Default()
	}
	if short, ok := v.Addr().Interface().(abridged); ok && n.shape == scalar {
		d.add(n, fmt.Sprintf("expected %s, not %s", mapping, n.shape), short.instead(n.text))
		return
	}
	if !d.want(n, mapping) {
		return
	}
	others := d.others
	d.others = nil // they are keys of the outermost mapping only
	before := d.count
	fields := d.fieldsOf(v.Type())
	known := make(map[string]bool, len(fields))
	for _, f := range fields {
		known[f.name] = true
	}
	for _, e := range n.entries {
		if !known[e.key.text] {
			d.noteUnknown(n, e.key.text)
			d.unknownKey(e, fields, others)
		}
	}
	for _, f := range fields {
		switch value := n.get(f.name); {
		case value != nil && value.shape != absent:
			d.value(value, v.FieldByIndex(f.index), f)
		case f.required && !d.misspelt(n, f.name):
			d.addf(n, "%s is missing", f.name)
		}
	}
	if c, ok := v.Addr().Interface().(checked); ok && d.count == before {
		if err := c.Check(); err != nil {
			d.addErr(n, err)
		}
	}
}

// unknownKey reports an unknown key. If the key belongs into a mapping beside this one, the hint says so.
func (d *decoder) unknownKey(e entry, fields []field, others []string) {
	message := "unknown key " + quote(e.key.text)
	if m, is := misnomers[e.key.text]; is && slices.Contains(names(fields), m.key) {
		d.add(e.key, message, m.write)
		return
	}
	for _, f := range fields {
		inner := f.typ
		if inner.Kind() != reflect.Struct || e.value.shape != scalar || reflect.PointerTo(inner).Implements(reflect.TypeFor[custom]()) {
			continue
		}
		if slices.Contains(names(d.fieldsOf(inner)), e.key.text) {
			d.add(e.key, message, fmt.Sprintf("write %s: {%s: …}", f.name, e.key.text)) // the value may be a secret
			return
		}
	}
	d.addUnknown(e.key, message, e.key.text, append(names(fields), others...))
}

// slice decodes a list; each item starts from its type's defaults.
func (d *decoder) slice(n *node, v reflect.Value, f field) {
	if n.shape == mapping && len(n.entries) > 0 && v.Type().Elem().Kind() == reflect.Struct && slices.Contains(names(d.fieldsOf(v.Type().Elem())), "name") {
		d.add(n, fmt.Sprintf("expected %s, not %s", list, n.shape), fmt.Sprintf("write each as a list item: - {name: %.60s, …}", n.entries[0].key.text))
		return
	}
	if !d.want(n, list) {
		return
	}
	items := reflect.MakeSlice(v.Type(), len(n.items), len(n.items))
	for i, item := range n.items {
		d.value(item, items.Index(i), f)
	}
	v.Set(items)
}

// dictionary decodes a mapping whose keys the writer chooses.
func (d *decoder) dictionary(n *node, v reflect.Value, f field) {
	if !d.want(n, mapping) {
		return
	}
	m := reflect.MakeMapWithSize(v.Type(), len(n.entries))
	for _, e := range n.entries {
		value := reflect.New(v.Type().Elem()).Elem()
		d.value(e.value, value, f)
		m.SetMapIndex(reflect.ValueOf(e.key.text).Convert(v.Type().Key()), value)
	}
	v.Set(m)
}

func (d *decoder) boolean(n *node, v reflect.Value) {
	switch {
	case !d.want(n, scalar):
	case n.text == "true" || n.text == "false":
		v.SetBool(n.text == "true")
	default:
		d.addf(n, "expected true or false, not %s", quote(n.text))
	}
}

// integer decodes a whole number within the field's bounds.
func (d *decoder) integer(n *node, v reflect.Value, f field) {
	if !d.want(n, scalar) {
		return
	}
	i, err := strconv.ParseInt(n.text, 10, v.Type().Bits())
	switch {
	case err != nil:
		d.addf(n, "expected a whole number, not %s", quote(n.text))
	case f.min != nil && i < int64(*f.min):
		d.addf(n, "%d is too small; the minimum is %.0f", i, *f.min)
	case f.max != nil && i > int64(*f.max):
		d.addf(n, "%d is too large; the maximum is %.0f", i, *f.max)
	default:
		v.SetInt(i)
	}
}

func (d *decoder) unsigned(n *node, v reflect.Value) {
	if !d.want(n, scalar) {
		return
	}
	i, err := strconv.ParseUint(n.text, 10, v.Type().Bits())
	if err != nil {
		d.addf(n, "expected a non-negative whole number, not %s", quote(n.text))
		return
	}
	v.SetUint(i)
}

func (d *decoder) float(n *node, v reflect.Value) {
	if !d.want(n, scalar) {
		return
	}
	x, err := strconv.ParseFloat(n.text, 64)
	if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
		d.addf(n, "expected a number, not %s", quote(n.text))
		return
	}
	v.SetFloat(x)
}

// text decodes a value by its type's own method.
func (d *decoder) text(n *node, u encoding.TextUnmarshaler) {
	if !d.want(n, scalar) {
		return
	}
	if err := u.UnmarshalText([]byte(n.text)); err != nil {
		d.addErr(n, err)
	}
}

// scalar decodes a value that has its own notation.
func (d *decoder) scalar(n *node, v reflect.Value, s notation) {
	if !d.want(n, scalar) {
		return
	}
	value, err := s.parse(n.text)
	if err != nil {
		d.addErr(n, err)
		return
	}
	if secret, ok := value.(secretSource); ok {
		value, err = secret.read(d.dir)
		if err != nil {
			d.addErr(n, err)
			return
		}
	}
	v.Set(reflect.ValueOf(value))
}

// decodeInto decodes n into what into points to, for Cloud.Decode and both files.
func (d *decoder) decodeInto(n *node, into any) error {
	v := reflect.ValueOf(into)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return drover.Errorf(drover.KindInternal, "decoding into %T, which is not a pointer", into)
	}
	d.value(n, v.Elem(), field{})
	return d.err()
}

// quote quotes a word of the file for a message, and cuts it if it is very long.
func quote(s string) string {
	if r := []rune(s); len(r) > 60 {
		s = string(r[:60]) + "…"
	}
	return strconv.Quote(s)
}
