package config

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// field is a key that a mapping may have, as a Go type declares it:
//
//	Size int `yaml:"size,required" min:"1" max:"10" doc:"how many"`
//
// The json tag is used where there is no yaml tag. Fields without a name, and those named "-", are not keys.
type field struct {
	name     string
	index    []int
	typ      reflect.Type
	required bool
	min, max *float64 // of numbers
	doc      string
}

// defaulter is a type that sets its defaults before the file's values are decoded into it.
type defaulter interface{ Default() }

// fieldsOf lists the keys of a struct type, including embedded ones, in the order of declaration.
func fieldsOf(t reflect.Type) []field {
	var fields []field
	for _, sf := range reflect.VisibleFields(t) {
		tag, ok := sf.Tag.Lookup("yaml")
		if !ok {
			tag = sf.Tag.Get("json")
		}
		name, options, _ := strings.Cut(tag, ",")
		if !sf.IsExported() || name == "" || name == "-" {
			continue
		}
		fields = append(fields, field{
			name:     name,
			index:    sf.Index,
			typ:      sf.Type,
			required: slices.Contains(strings.Split(options, ","), "required"),
			min:      bound(sf.Tag.Get("min")),
			max:      bound(sf.Tag.Get("max")),
			doc:      sf.Tag.Get("doc"),
		})
	}
	return fields
}

// bound reads a min or max tag; nil if there is none.
func bound(tag string) *float64 {
	n, err := strconv.ParseFloat(tag, 64)
	if err != nil {
		return nil
	}
	return &n
}

// names returns the keys' names.
func names(fields []field) []string {
	list := make([]string, len(fields))
	for i, f := range fields {
		list[i] = f.name
	}
	return list
}
