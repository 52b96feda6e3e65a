package configimport_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"drover"
	"drover/internal/config"
	"drover/internal/configimport"
)

// old is a document in the style of prevmtable's documentation: keys in any case, and few commas.
const old = `{
  secondsToRest: 10 // which is often
  secondsForExhaustion: 120
  prefix: "delete-"
  allowedzones: [
    "us-central1-b"
    "us-central1-f",
  ]
  hooks: { create: "prevmtable-create-hook", "Delete": "gone", vanished: "gone" exhausted: "tell" }
  targetVMCount: 3
  instance: {
    metadata: { items: [ { key: "startup-script", value: "docker run --rm -p 8080:8080 example/http" }, { key: "kind", value: "{name} in {zone}" } ] }
    tags: { items: [ "prevmtable-http" ] }
    machineType: "https://www.googleapis.com/compute/v1/projects/{project}/zones/{zone}/machineTypes/n1-standard-1"
    name: "{name}"
    disks: [ {
      autoDelete: true
      boot: true # and no other
      mode: "READ_WRITE"
      type: "PERSISTENT"
      initializeParams: {
        sourceImage: "https://www.googleapis.com/compute/v1/projects/coreos-cloud/global/images/coreos-stable"
        diskSizeGb: "20"
        diskType: "projects/{project}/zones/{zone}/diskTypes/pd-ssd"
      }
    } ]
    networkInterfaces: [ {
      accessConfigs: [ { name: "external-nat", type: "ONE_TO_ONE_NAT" } ]
      network: "https://www.googleapis.com/compute/v1/projects/{project}/global/networks/default"
    } ]
    scheduling: { automaticRestart: false, preemptible: true }
  }
  colour: "blue"
}`

// covers S10 P11
func TestImport(t *testing.T) {
	for _, c := range []struct {
		name, kind, in, want string
		notes                []string // their beginnings, in order
	}{
		{"prevmtable's pool, with files for its script and template", "prevmtable", old, `version: 1
fleet: delete
clouds:
  us-central1:
    driver: gce
    region: us-central1
    zones:
    - us-central1-b
    - us-central1-f
    max_instances: 6
    list_interval: 11s
    disk_type: pd-ssd
pools:
  delete:
    size: 3
    zones:
    - us-central1-b
    - us-central1-f
    type: n1-standard-1
    market: spot
    name_prefix: delete-
    login: none
    image: coreos-cloud/coreos-stable
    disk: 20Gi
    exhaustion_cooldown: 2m0s
    cloud_init: ./startup-script.sh
    template: ./template.json
    hooks:
      created: attribute:us-central1/prevmtable-create-hook
      destroyed: attribute:us-central1/gone
      exhausted: attribute:us-central1/tell
      vanished: attribute:us-central1/gone
`, []string{"SecondsToRest: raised from 10s", "colour: unknown, and not converted"}},
		{"kip's standby cells", "kip", "- {instanceType: t3.nano, count: 2, spot: true}\n- {instanceType: m5.large, count: 1}\n", `version: 1
fleet: kip
clouds:
  aws:
    driver: ec2
    region: us-east-1
    max_instances: 13
pools:
  standby-1:
    spare: 2
    type: t3.nano
    market: spot
  standby-2:
    spare: 1
    type: m5.large
    market: on_demand
`, []string{"no cloud was converted"}},
		{"kip's provider.yaml", "kip", "cloud: {aws: {region: eu-west-1}}\ncells: {standbyCells: [{instanceType: t3.nano, count: 1}]}\n", `version: 1
fleet: kip
clouds:
  aws:
    driver: ec2
    region: eu-west-1
    max_instances: 11
pools:
  standby-1:
    spare: 1
    type: t3.nano
    market: on_demand
`, []string{"only the region and cells.standbyCells of kip's provider.yaml are converted"}},
		{"groups", "groups", "# two\n1:10:m7i.large:workers\n--nodes=0:3:p5.48xlarge:big_ones\n", `version: 1
fleet: groups
clouds:
  aws:
    driver: ec2
    region: us-east-1
    max_instances: 13
pools:
  workers:
    floor: 1
    max: 10
    type: m7i.large
  big-ones:
    floor: 0
    max: 3
    type: p5.48xlarge
`, []string{"big_ones: the pool is called big-ones", "no cloud was converted"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := configimport.Import(c.kind, []byte(c.in), true)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, string(r.YAML)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if len(r.Notes) != len(c.notes) {
				t.Fatalf("the notes are %q", r.Notes)
			}
			for i, note := range c.notes {
				if !strings.HasPrefix(r.Notes[i], note) {
					t.Errorf("note %d is %q, want %q", i, r.Notes[i], note)
				}
			}
			good(t, r)
		})
	}
	t.Run("the startup script runs at every boot, and the rest of the template stays in a file", func(t *testing.T) {
		r, err := configimport.Import("prevmtable", []byte(old), true)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := r.Files["startup-script.sh"], "#cloud-boothook\n#!/bin/sh\ndocker run --rm -p 8080:8080 example/http\n"; got != want {
			t.Errorf("the script is %q", got)
		}
		var template map[string]any
		if err := json.Unmarshal([]byte(r.Files["template.json"]), &template); err != nil {
			t.Fatal(err)
		}
		items := func(list ...any) any { return map[string]any{"items": list} }
		want := map[string]any{
			"metadata": items(map[string]any{"key": "kind", "value": "{name} in {zone}"}), "tags": items("prevmtable-http"),
			"networkInterfaces": []any{map[string]any{
				"accessConfigs": []any{map[string]any{"name": "external-nat", "type": "ONE_TO_ONE_NAT"}},
				"network":       "https://www.googleapis.com/compute/v1/projects/{project}/global/networks/default",
			}},
		}
		if diff := cmp.Diff(want, template); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
	t.Run("reports what is lost", func(t *testing.T) {
		for in, want := range map[string]string{
			`prefix: "Web_"`:                      `Prefix: "Web_" is not allowed in every cloud`,
			`hooks: {reborn: "x"}`:                "Hooks.reborn: unknown, and not converted",
			`secondsToRest: "soon"`:               "SecondsToRest: soon is not a valid number of seconds, and not converted",
			`secondsForExhaustion: -5`:            "SecondsForExhaustion: -5 is not a valid number of seconds, and not converted",
			`instance: {machineType: "f1-micro"}`: "machineType: types with shared vCPUs, such as f1-micro,",
			`instance: {machineType: "n1-standard-1", disks: [{boot: true, autoDelete: false}]}`:                     "disks: autoDelete was off",
			`instance: {machineType: "n1-standard-1", disks: [{boot: true, initializeParams: {diskSizeGb: "big"}}]}`: "disks: diskSizeGb big is not a valid size",
			`instance: {machineType: "n1-standard-1", disks: [{boot: true, deviceName: "first"}]}`:                   "disks: the boot disk's deviceName is not converted",
		} {
			whole := `{prefix: "a-", allowedZones: ["us-central1-b"], targetVMCount: 1, instance: {machineType: "n1-standard-1"}, ` + in + `}`
			r, err := configimport.Import("prevmtable", []byte(whole), true)
			if err != nil || len(r.Notes) != 1 || !strings.HasPrefix(r.Notes[0], want) {
				t.Errorf("%s: %v, %q", in, err, r.Notes)
			}
		}
	})
	t.Run("without a folder, files are left out and reported", func(t *testing.T) {
		r, err := configimport.Import("prevmtable", []byte(old), false)
		if err != nil || len(r.Files) > 0 || strings.Contains(string(r.YAML), "./") {
			t.Fatalf("%v: %v\n%s", err, r.Files, r.YAML)
		}
		if !strings.Contains(strings.Join(r.Notes, "\n"), "startup-script: not converted; to write it to a file, use --files") {
			t.Errorf("the notes are %q", r.Notes)
		}
		good(t, r)
	})
}

// good checks that the configuration is valid, with the files it names.
func good(t *testing.T, r configimport.Result) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range r.Files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := config.Parse("drover.yaml", r.YAML, dir); err != nil {
		t.Errorf("the configuration is not valid: %v\n%s", err, r.YAML)
	}
}

func TestInvalidInputIsRefused(t *testing.T) {
	for _, c := range []struct{ kind, in, want string }{
		{"slurm", "", `"slurm" is not a known format`},
		{"prevmtable", "{a: 1\n b 2}", `line 2: a colon is missing after "b"`},
		{"prevmtable", "{a: [1, 2", "line 1: a value is missing"},
		{"prevmtable", `{a: "x`, "line 1: a string is not terminated"},
		{"prevmtable", "{a: x}", `line 1: "x" is not a value`},
		{"prevmtable", "{} {}", "line 1: there is extra text after the document"},
		{"prevmtable", strings.Repeat("[", 1000), "line 1: values are nested too deeply"},
		{"prevmtable", "{targetVMCount: 1}", "AllowedZones is missing, so Drover cannot tell where it may create instances"},
		{"prevmtable", `{allowedZones: ["us-central1-b"], targetVMCount: 2.5}`, "TargetVMCount is missing, or is not a valid number of instances"},
		{"prevmtable", `{allowedZones: ["us-central1-b"]}`, "TargetVMCount is missing, or is not a valid number of instances"},
		{"prevmtable", `{allowedZones: ["us-central1-b"], targetVMCount: 1}`, "Instance.machineType is missing"},
		{"prevmtable", `{allowedZones: ["b"], targetVMCount: 1, instance: {machineType: "n1-standard-1"}}`, `AllowedZones: "b" is not a GCE zone`},
		{"kip", "[]", "there are no standby cells"},
		{"kip", "- {count: 1}", "standby cell 1 has no instanceType"},
		{"groups", "1:2:a", `line 1: "1:2:a" is not in the form min:max:type:name`},
		{"groups", "3:2:a:b", `line 1: "3:2:a:b" must have a type and the numbers min and max; max must be at least 1 and not less than min`},
		{"groups", "1:2:a:b\n1:2:a:b", "line 2: there is already a group b"},
		{"groups", "", "there are no groups"},
	} {
		_, err := configimport.Import(c.kind, []byte(c.in), true)
		if drover.KindOf(err) != drover.KindInvalid || drover.AsError(err, drover.KindInternal).Message != c.want {
			t.Errorf("%s %.40q: %v, want %s", c.kind, c.in, err, c.want)
		}
	}
}

func TestAFaultInAListOfStandbyCellsIsNamed(t *testing.T) {
	_, err := configimport.Import("kip", []byte("- {instanceType: t3.nano, count: two}\n"), true)
	if drover.KindOf(err) != drover.KindInvalid || !strings.Contains(err.Error(), "[1:34]") {
		t.Error(err)
	}
}

func FuzzLenient(f *testing.F) {
	f.Add(old)
	f.Add("{a: /* x")
	f.Fuzz(func(t *testing.T, s string) {
		r, err := configimport.Import("prevmtable", []byte(s), true)
		if err != nil && len(r.YAML) > 0 {
			t.Error("an error comes with a configuration")
		}
	})
}
