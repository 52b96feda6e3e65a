package config_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/jsonschema-go/jsonschema"
	"github.com/rogpeppe/go-internal/txtar"

	"drover"
	"drover/internal/config"
)

// validator checks YAML texts against one of the schemas.
func validator(t *testing.T, schema []byte, err error) func(text string) error {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(schema, &s); err != nil {
		t.Fatal(err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return func(text string) error {
		asJSON, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		var value any
		if err := json.Unmarshal(asJSON, &value); err != nil {
			t.Fatal(err)
		}
		return resolved.Validate(value)
	}
}

func TestBatchSchema(t *testing.T) {
	schema, err := config.BatchSchema()
	valid := validator(t, schema, err)
	examples, err := filepath.Glob("../../examples/*.yaml")
	if err != nil || len(examples) < 2 {
		t.Fatalf("found only %v (%v)", examples, err)
	}
	for _, path := range examples {
		t.Run(filepath.Base(path)+" is valid and accepted", func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := valid(string(data)); err != nil {
				t.Error(err)
			}
			if _, err := config.LoadBatch(path); err != nil {
				t.Error(err)
			}
		})
	}
	for _, text := range []string{
		"jobs: [{name: a, command: [x], comand: x}]",
		"jobs: [{name: a, command: x y}]",
		"jobs: [{name: a, command: []}]",
		"jobs: [{command: [x]}]",
		"jobs: [{name: a, command: [x], resources: {cpus: 1}}]",
		"jobs: [{name: a, command: [x], spot: maybe}]",
		"jobs: [{name: a, command: [x], attempts: 0}]",
		"jobs: [{name: a, command: [x], array: 0}]",
		"jobs: [{name: a, command: [x], retry: {exit_codes: [256], times: 1}}]",
		"name: x",
	} {
		t.Run("neither valid nor accepted: "+text, func(t *testing.T) {
			if valid(text) == nil {
				t.Error("the schema accepts it")
			}
			if _, err := config.ParseBatch("batch.yaml", []byte(text), ""); err == nil {
				t.Error("the parser accepts it")
			}
		})
	}
}

func TestConfigSchema(t *testing.T) {
	schema, err := config.Schema(map[string]any{"test": keys{}})
	valid := validator(t, schema, err)
	archive, err := txtar.ParseFile("testdata/config/good.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"the example": config.Example(),
		"every key":   string(archive.Files[0].Data),
		"own keys":    "version: 1\nclouds: {x: {driver: test, region: eu, disk: 1Gi, types: [{name: a, vcpus: 0.5}]}}",
		"a filter":    "version: 1\nclouds: {x: {driver: test, region: eu, types: {include: [a]}}}",
	} {
		t.Run(name+" is valid", func(t *testing.T) {
			if err := valid(text); err != nil {
				t.Error(err)
			}
		})
	}
	for _, text := range []string{
		"version: 1\nlisten: x\nclouds: {x: {driver: y}}",
		"version: 1\nclouds: {x: {driver: y}}\ninstances: {keep_brocken: 1}",
		"version: 1\nclouds: {x: {driver: y, ssh: {prot: 22}}}",
		"version: 1\nclouds: {}",
		"version: 2\nclouds: {x: {driver: y}}",
		"clouds: {x: {driver: y}}",
	} {
		t.Run("neither valid nor accepted: "+strings.ReplaceAll(text, "\n", "; "), func(t *testing.T) {
			if valid(text) == nil {
				t.Error("the schema accepts it")
			}
			if _, err := config.Parse("drover.yaml", []byte(text), ""); err == nil {
				t.Error("the parser accepts it")
			}
		})
	}
	for _, own := range []string{"regoin: eu, region: us", "zones: [a]", "region: eu, types: [{nmae: a}]"} {
		t.Run("neither valid nor decoded: "+own, func(t *testing.T) {
			if valid("version: 1\nclouds: {x: {driver: test, "+own+"}}") == nil {
				t.Error("the schema accepts it")
			}
			if cloud(t, "", own).Decode(&keys{}) == nil {
				t.Error("the driver's decoder accepts it")
			}
		})
	}
}

func TestExample(t *testing.T) {
	if _, err := config.Parse("example.yaml", []byte(config.Example()), ""); err != nil {
		t.Fatalf("the example is not accepted:\n%v", err)
	}
	if _, err := config.ParseBatch("batch.yaml", []byte(config.BatchExample()), t.TempDir()); err != nil {
		t.Fatalf("the example of a batch is not accepted:\n%v", err)
	}
	for _, h := range drover.Hooks() {
		if !strings.Contains(config.Example(), "\n#   "+string(h)+": ./") {
			t.Errorf("the example lacks the hook %s", h)
		}
	}
	for name, example := range map[string]struct {
		text   string
		schema func() ([]byte, error)
	}{
		"a configuration": {config.Example(), func() ([]byte, error) { return config.Schema(nil) }},
		"a batch":         {config.BatchExample(), config.BatchSchema},
	} {
		schema, err := example.schema()
		if err != nil {
			t.Fatal(err)
		}
		var s jsonschema.Schema
		if err := json.Unmarshal(schema, &s); err != nil {
			t.Fatal(err)
		}
		t.Run("the example of "+name+" names every key", func(t *testing.T) { namesKeys(t, example.text, &s) })
	}
}

// namesKeys checks that every property of a schema is in the example, possibly in a comment.
func namesKeys(t *testing.T, example string, s *jsonschema.Schema) {
	for name, p := range s.Properties {
		if !strings.Contains(example, name+":") {
			t.Errorf("the example lacks %s", name)
		}
		namesKeys(t, example, p)
	}
	for _, sub := range append(s.AnyOf, s.AdditionalProperties, s.Items) {
		if sub != nil {
			namesKeys(t, example, sub)
		}
	}
}
