package config

import (
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"
)

const dialect = "https://json-schema.org/draft/2020-12/schema"

// described is a custom type that describes its written form.
type described interface{ schema() *jsonschema.Schema }

// refined is a struct with constraints on several of its keys.
type refined interface{ refine(s *jsonschema.Schema) }

// BatchSchema returns the JSON Schema of batch files.
func BatchSchema() ([]byte, error) {
	s := schemaOf(reflect.TypeFor[batchFile]())
	s.Schema, s.Title = dialect, "a batch of Drover jobs"
	return json.MarshalIndent(s, "", "  ")
}

// Schema returns the JSON Schema of configuration files. For each driver the caller passes a value of the type into
// which the driver decodes its own keys; a driver without one may have any keys.
func Schema(drivers map[string]any) ([]byte, error) {
	s := schemaOf(reflect.TypeFor[configFile]())
	s.Schema, s.Title = dialect, "a Drover configuration"
	s.Properties["clouds"].AdditionalProperties = cloudSchema(drivers)
	s.Properties["clouds"].MinProperties = new(1)
	return json.MarshalIndent(s, "", "  ")
}

// cloudSchema returns the schema of a cloud: the common keys, and each driver's own keys.
func cloudSchema(drivers map[string]any) *jsonschema.Schema {
	s := schemaOf(reflect.TypeFor[Common]())
	filter := s.Properties["types"]
	s.Properties["types"] = &jsonschema.Schema{AnyOf: []*jsonschema.Schema{filter, {Type: "array"}}}
	s.AdditionalProperties = nil
	for _, name := range slices.Sorted(maps.Keys(drivers)) {
		own := schemaOf(reflect.TypeOf(drivers[name]))
		if types := own.Properties["types"]; types != nil {
			own.Properties["types"] = &jsonschema.Schema{AnyOf: []*jsonschema.Schema{filter, types}}
		}
		for key := range s.Properties {
			if own.Properties[key] == nil {
				own.Properties[key] = &jsonschema.Schema{} // described above
			}
		}
		s.AllOf = append(s.AllOf, &jsonschema.Schema{If: driverIs(name), Then: own})
	}
	return s
}

// driverIs matches clouds of this driver.
func driverIs(name string) *jsonschema.Schema {
	var value any = name
	return &jsonschema.Schema{Properties: map[string]*jsonschema.Schema{"driver": {Const: &value}}}
}

// never matches nothing.
func never() *jsonschema.Schema { return &jsonschema.Schema{Not: &jsonschema.Schema{}} }

// schemaOf describes the written form of a type, from the same fields that the decoder uses.
func schemaOf(t reflect.Type) *jsonschema.Schema {
	if d, ok := reflect.Zero(t).Interface().(described); ok {
		return d.schema()
	}
	if n, ok := scalarOf(t); ok {
		return &n.schema
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return textSchema()
	}
	switch t.Kind() {
	case reflect.Pointer:
		return schemaOf(t.Elem())
	case reflect.Struct:
		return objectOf(t)
	case reflect.Slice:
		return &jsonschema.Schema{Type: "array", Items: schemaOf(t.Elem())}
	case reflect.Map:
		return &jsonschema.Schema{Type: "object", AdditionalProperties: schemaOf(t.Elem())}
	case reflect.String:
		return textSchema()
	case reflect.Bool:
		return &jsonschema.Schema{Type: "boolean"}
	case reflect.Int, reflect.Int32, reflect.Int64:
		return &jsonschema.Schema{Type: "integer"}
	case reflect.Uint32, reflect.Uint64:
		return &jsonschema.Schema{Type: "integer", Minimum: new(0.0)}
	case reflect.Float64:
		return &jsonschema.Schema{Type: "number"}
	}
	panic(fmt.Sprintf("config: no schema for a %v", t))
}

// textSchema also allows YAML's numbers and booleans, which are read as they are written.
func textSchema() *jsonschema.Schema {
	return &jsonschema.Schema{Types: []string{"string", "number", "boolean"}}
}

// objectOf describes a struct: its keys, and no others.
func objectOf(t reflect.Type) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{}, AdditionalProperties: never()}
	for _, f := range fieldsOf(t) {
		p := schemaOf(f.typ)
		if f.doc != "" {
			p.Description = f.doc
		}
		number := p
		if p.Items != nil {
			number = p.Items
		}
		if f.min != nil {
			number.Minimum = f.min
		}
		if f.max != nil {
			number.Maximum = f.max
		}
		s.Properties[f.name] = p
		s.PropertyOrder = append(s.PropertyOrder, f.name)
		if f.required {
			s.Required = append(s.Required, f.name)
		}
	}
	if r, ok := reflect.Zero(t).Interface().(refined); ok {
		r.refine(s)
	}
	return s
}
