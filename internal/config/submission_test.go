package config_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/jsonschema-go/jsonschema"
	"pgregory.net/rapid"

	"drover"
	"drover/internal/config"
)

// batches generates valid batches.
func batches() *rapid.Generator[drover.Batch] {
	return rapid.Custom(func(t *rapid.T) drover.Batch {
		b := drover.Batch{Name: rapid.StringMatching(`[a-z][a-z0-9_-]{0,9}`).Draw(t, "batch")}
		for i := range rapid.IntRange(1, 4).Draw(t, "jobs") {
			b.Jobs = append(b.Jobs, job(t, i))
		}
		return b
	})
}

// job generates a job that follows this many others in its batch.
func job(t *rapid.T, before int) drover.JobSpec {
	j := config.DefaultJob()
	j.Name = fmt.Sprintf("j%d", before)
	j.Command = append([]string{"x"}, rapid.SliceOfN(text0(), 0, 3).Draw(t, "arguments")...)
	if rapid.Bool().Draw(t, "array?") {
		first := rapid.IntRange(0, 1000).Draw(t, "first")
		j.Array = drover.Array{First: first, Last: first + rapid.IntRange(0, 1000).Draw(t, "more"), Set: true}
	}
	j.Resources = drover.Resources{
		CPU:    drover.MilliCPU(rapid.Int64Range(1, 1_000_000).Draw(t, "cpu")),
		Memory: drover.Bytes(rapid.Int64Range(int64(drover.MiB), 1<<50).Draw(t, "memory")),
		Disk:   drover.Bytes(rapid.Int64Range(int64(drover.MiB), 1<<50).Draw(t, "disk")),
		GPUs:   rapid.IntRange(0, 8).Draw(t, "gpus"),
		Arch:   rapid.SampledFrom([]drover.Arch{"", "amd64", "arm64"}).Draw(t, "arch"),
	}
	j.Placement = drover.Placement{Cloud: rapid.SampledFrom([]string{"", "here"}).Draw(t, "cloud"), Zone: text0().Draw(t, "zone"), MaxPrice: drover.Money(rapid.Int64Range(0, 1<<62).Draw(t, "max_price"))}
	j.Env = mapOf(t, "env", `[A-Z][A-Z_]{0,5}`, text0())
	j.Labels = mapOf(t, "labels", `[a-z][a-z0-9./_-]{0,5}`, rapid.StringMatching(`[ -~é世]{0,20}`))
	j.Outputs = rapid.SliceOfN(rapid.SampledFrom([]string{"*.png", "a/**", "{x,y}.csv"}), 0, 2).Draw(t, "outputs")
	if len(j.Outputs) == 1 && rapid.Bool().Draw(t, "required") {
		j.Required = j.Outputs
	}
	j.Spot = rapid.SampledFrom([]drover.SpotPolicy{drover.SpotPrefer, drover.SpotRequire, drover.SpotNever}).Draw(t, "spot")
	j.Attempts = rapid.IntRange(1, 100).Draw(t, "attempts")
	if rapid.Bool().Draw(t, "retry?") {
		j.Retry = drover.Retry{ExitCodes: rapid.SliceOfN(rapid.IntRange(1, 255), 0, 3).Draw(t, "codes"), Times: rapid.IntRange(1, 100).Draw(t, "times")}
	}
	j.Timeout = time.Duration(rapid.Int64Range(0, int64(1000*time.Hour)).Draw(t, "timeout"))
	if rapid.Bool().Draw(t, "is expected") {
		most := j.Timeout
		if most == 0 {
			most = 1000 * time.Hour
		}
		j.Expected = time.Duration(rapid.Int64Range(1, int64(most)).Draw(t, "expected"))
	}
	j.MaxWait = time.Duration(rapid.Int64Range(0, int64(1000*time.Hour)).Draw(t, "max_wait"))
	j.Priority = rapid.IntRange(0, 1000).Draw(t, "priority")
	for i := range before {
		if rapid.Bool().Draw(t, "after?") {
			name := fmt.Sprintf("j%d", i)
			j.After = append(j.After, name)
			if rapid.Bool().Draw(t, "from?") {
				j.Inputs = append(j.Inputs, drover.Input{From: name})
			}
		}
	}
	if rapid.Bool().Draw(t, "paths?") {
		j.Inputs = append(j.Inputs, drover.Input{Path: "/home/me/données"})
		for i := range rapid.IntRange(0, 3).Draw(t, "files") {
			j.Files = append(j.Files, drover.File{
				Path: fmt.Sprintf("données/sub dir/%d", i),
				Mode: rapid.Uint32Range(0, 0o777).Draw(t, "mode"),
				Size: rapid.Int64Range(0, 1<<60).Draw(t, "size"),
				Hash: rapid.StringMatching(`[0-9a-f]{64}`).Draw(t, "hash"),
			})
		}
	}
	return j
}

// text0 generates any text without a zero byte.
func text0() *rapid.Generator[string] {
	return rapid.Map(rapid.String(), func(s string) string { return strings.ReplaceAll(strings.ToValidUTF8(s, "?"), "\x00", "0") })
}

func mapOf(t *rapid.T, name, key string, value *rapid.Generator[string]) map[string]string {
	m := rapid.MapOfN(rapid.StringMatching(key), value, 0, 3).Draw(t, name)
	if len(m) == 0 {
		return nil
	}
	return m
}

// TestSubmissions encodes batches and parses them again.
func TestSubmissions(t *testing.T) {
	text, err := config.SubmissionSchema()
	valid := validator(t, text, err)
	var schema jsonschema.Schema
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("a batch survives a round trip, and its encoding meets the schema", rapid.MakeCheck(func(rt *rapid.T) {
		want := batches().Draw(rt, "batch")
		data, err := config.EncodeSubmission(want)
		if err != nil {
			rt.Fatal(err)
		}
		got, err := config.ParseSubmission("body", data)
		if err != nil {
			rt.Fatalf("%v\n%s", err, data)
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			rt.Fatalf("(-want +got)\n%s", diff)
		}
		var value any
		if err := json.Unmarshal(data, &value); err != nil {
			rt.Fatal(err)
		}
		if err := resolved.Validate(value); err != nil {
			rt.Fatal(err)
		}
	}))
	t.Run("YAML and JSON give the same batch", func(t *testing.T) {
		asYAML, err := config.ParseSubmission("body", []byte("name: a\njobs:\n- name: b\n  command: [x, 1.50, true, \"~\"]\n  array: 3\n  timeout: 0\n"))
		if err != nil {
			t.Fatal(err)
		}
		asJSON, err := config.ParseSubmission("body", []byte(`{"name": "a", "jobs": [{"name": "b", "command": ["x", 1.50, true, "~"], "array": 3, "timeout": 0, "labels": null}]}`))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(asYAML, asJSON); diff != "" {
			t.Errorf("(-YAML +JSON)\n%s", diff)
		}
	})
	t.Run("bytes that are not text cannot be submitted", func(t *testing.T) {
		j := config.DefaultJob()
		j.Name, j.Command = "a", []string{"x", "\xff"}
		if _, err := config.EncodeSubmission(drover.Batch{Name: "b", Jobs: []drover.JobSpec{j}}); drover.KindOf(err) != drover.KindInvalid {
			t.Errorf("got %v", err)
		}
	})
	t.Run("only submissions have files", func(t *testing.T) {
		text := "name: a\njobs: [{name: b, command: [x], inputs: [{path: /x/f}], files: []}]"
		if _, err := config.ParseSubmission("body", []byte(text)); err != nil || valid(text) != nil {
			t.Errorf("a submission: %v, %v", err, valid(text))
		}
		if _, err := config.ParseBatch("batch.yaml", []byte(text), ""); !strings.Contains(fmt.Sprint(err), `unknown key "files"`) {
			t.Errorf("a batch file: %v", err)
		}
	})
}

func TestSubmissionsWithFaults(t *testing.T) {
	zeros := strings.Repeat("0", 64)
	for _, c := range []struct{ name, text, want string }{
		{"a misspelt key", "name: a\njobs:\n- name: b\n  comand: [x]\n", "body:4:3: unknown key \"comand\"\n    hint: did you mean command?"},
		{"a misspelt key in JSON", "{\"name\": \"a\",\n \"jobs\": [{\"name\": \"é\",\"comand\": [\"x\"]}]}", "body:2:24: unknown key \"comand\"\n    hint: did you mean command?"},
		{"a duplicate key", `{"name": "a", "name": "b"}`, `body:1:15: name is given twice, first on line 1`},
		{"a missing name", `{"jobs": [{"name": "b", "command": ["x"]}]}`, "body:1:1: name is missing"},
		{"nested lists", strings.Repeat("[", 100) + strings.Repeat("]", 100), "body:1:33: nested too deeply"},
		{"an input whose files are not listed", "name: a\njobs: [{name: b, command: [x], inputs: [{path: /x}]}]", "body:2:40: some inputs are paths, but their files are not listed"},
		{"files without an input", "name: a\njobs: [{name: b, command: [x], files: []}]", "body:2:39: files are listed, but no input is a path"},
		{"10,000 labels, which each of 1,000 elements would have", labels(10_000, 1), "body:1:50: a job may have at most 64 labels, not 10000"},
		{"a label of 257 bytes", labels(1, 257), "the value of a label must be one line of at most 256 bytes"},
		{"the root as an input", "name: a\njobs: [{name: b, command: [x], inputs: [{path: /}], files: []}]", "body:2:48: input \"/\" does not end in the name of a file or folder"},
		{"a file outside the working folder", file("../x", 420, zeros), "is not a plain path within the working folder"},
		{"a file under no input", file("y/z", 420, zeros), `"y/z" is not under the name of an input`},
		{"a mode with other bits", file("x", 33188, zeros), "33188 has bits other than permission bits"},
		{"an invalid hash", file("x", 420, "abc"), `"abc" is not a SHA-256 hash in hex`},
		{"a file that is also a folder", "name: a\njobs: [{name: b, command: [x], inputs: [{path: /x}], files: [{path: x/y, mode: 1, size: 1, hash: " + zeros + "}, {path: x, mode: 1, size: 1, hash: " + zeros + "}]}]",
			`"x" is listed as a file and as a folder with "x/y" in it`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := config.ParseSubmission("body", []byte(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

// labels returns a submission with this many labels of this many bytes.
func labels(n, bytes int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "k%d: %s,", i, strings.Repeat("v", bytes))
	}
	return "{name: a, jobs: [{name: b, command: [x], labels: {" + b.String() + "}, array: 1000}]}"
}

// file returns a submission with one file.
func file(path string, mode int, hash string) string {
	return fmt.Sprintf("name: a\njobs: [{name: b, command: [x], inputs: [{path: /home/x}], files: [{path: %s, mode: %d, size: 1, hash: %s}]}]", path, mode, hash)
}

// FuzzSubmission checks that reading any bytes gives faults, or a batch that stays the same when encoded.
func FuzzSubmission(f *testing.F) {
	seed(f, "testdata/batch")
	f.Add([]byte(file("x", 420, strings.Repeat("0", 64))))
	f.Add([]byte(`{"name": "a", "jobs": [{"name": "b", "command": ["x"], "array": "1-3"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := config.ParseSubmission("body", data)
		if err != nil {
			places(t, err)
			return
		}
		encoded, err := config.EncodeSubmission(b)
		if err != nil {
			t.Fatal(err)
		}
		again, err := config.ParseSubmission("body", encoded)
		if err != nil {
			t.Fatalf("%v\n%s", err, encoded)
		}
		twice, err := config.EncodeSubmission(again)
		if err != nil || string(twice) != string(encoded) {
			t.Fatalf("%s\nbecame\n%s", encoded, twice)
		}
	})
}

// Checking any of these used to take minutes of CPU time, or gigabytes of memory.
func TestHostileSubmissionsAreCheckedQuickly(t *testing.T) {
	names := func(n int, name string) string {
		return `"` + strings.Join(slices.Collect(func(yield func(string) bool) {
			for i := range n {
				yield(fmt.Sprint(name, i))
			}
		}), `","`) + `"`
	}
	jobs := func(n int, job func(i int) string) string {
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprintf(`{"name":"j%d","command":["true"],%s}`, i, job(i))
		}
		return `{"name":"x","jobs":[` + strings.Join(all, ",") + `]}`
	}
	part := 1 // the texts have 1/part of the maximum size
	if testing.Short() {
		part = 4
	}
	unknown := names(1000, "unknown-job-")
	each := names(600, "j")
	for name, batch := range map[string]string{
		"many jobs that depend on unknown jobs": jobs(300/part, func(int) string { return `"after":[` + unknown + `]` }),
		"many unknown keys before the one to find": jobs(1, func(int) string {
			return strings.ReplaceAll(names(150_000/part, "k"), `,`, `:0,`) + `:0,"after":[` + names(150_000/part, "u") + `]`
		}),
		"jobs that all depend on each other":       jobs(600, func(int) string { return `"after":[` + each + `]` }),
		"very many empty jobs":                     `{"name":"x","jobs":[` + strings.Repeat("{},", 400_000/part) + `{}]}`,
		"very many keys without values, in YAML":   strings.Repeat("? a\n", 125_000/part),
		"very many keys without values, in braces": "{" + strings.Repeat("a,", 250_000/part) + "a}",
		"very many blank lines in a text, in YAML": "a: |\n" + strings.Repeat(" \n", 125_000/part),
		"very many aliases":                        "[&a 1" + strings.Repeat(",*a", 2_600_000/part) + "]",
		"very many nested lists":                   strings.Repeat("- ", 100_000),
		"a file in very many folders": jobs(1, func(int) string {
			return `"inputs":[{"path":"in"}],"files":[{"path":"in` + strings.Repeat("/a", 1_000_000/part) + `","mode":420,"size":1,"hash":"` + strings.Repeat("0", 64) + `"}]`
		}),
	} {
		t.Run(name, func(t *testing.T) {
			began := cpuTime(t)
			_, err := config.ParseSubmission("body", []byte(batch))
			places(t, err)
			if took := cpuTime(t) - began; took > 10*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}
