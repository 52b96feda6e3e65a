package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"drover"
)

func TestChanges(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"a.yaml": "#cloud-config\n", "key": "s3cret", "other": "an0ther"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	read := func(text string) *Config {
		t.Helper()
		c, err := Parse("t", []byte("version: 1\n"+text), dir)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	const cloud = "clouds: {here: {driver: local, zones: [a, b], max_instances: 4}}\n"
	for _, test := range []struct {
		name, from, to string
		want           []drover.ConfigChange
	}{
		{"order, comments and defaults written out change nothing", cloud, "# all of it\ninstances: {idle_timeout: 60s, probe_interval: 10s}\nclouds:\n  here:\n    max_instances: 4\n    zones: [a, b]\n    driver: local\n", nil},
		{"a changed value is shown with its default", cloud, cloud + "instances: {idle_timeout: 5m}\n", []drover.ConfigChange{{Key: "instances.idle_timeout", From: "1m", To: "5m"}}},
		{"an added or removed pool is shown whole, a changed one by key", cloud + "pools: {old: {size: 1}, web: {size: 2, zones: [a]}}\n",
			cloud + "pools: {new: {floor: 1, zones: [a, b]}, web: {size: 3, zones: [b], replace: {max_surge: 10%}}}\n",
			[]drover.ConfigChange{{Key: "pools.new", To: "{floor: 1, zones: [a, b]}"}, {Key: "pools.old", From: "{size: 1}"},
				{Key: "pools.web.replace.max_surge", From: "1", To: "10%"}, {Key: "pools.web.size", From: "2", To: "3"}, {Key: "pools.web.zones", From: "[a]", To: "[b]"}}},
		{"a health check is shown as written", cloud + "pools: {web: {size: 1}}\n", cloud + "pools: {web: {size: 1, health: {http: ':80/', interval: 5s}}}\n",
			[]drover.ConfigChange{{Key: "pools.web.health", To: "{http: :80/, interval: 5s}"}}},
		{"clouds are shown like pools, with drivers' own keys", cloud, "clouds: {here: {driver: local, zones: [a], max_instances: 5}, there: {driver: local}}\n",
			[]drover.ConfigChange{{Key: "clouds.here.max_instances", From: "4", To: "5"}, {Key: "clouds.here.zones", From: "[a, b]", To: "[a]"}, {Key: "clouds.there", To: "{driver: local}"}}},
		{"a secret is never shown", cloud + "notify: {secret: file:key}\nhooks: {ready: 'https://me:pw@example.org/x'}\n", cloud + "notify: {secret: file:other}\nhooks: {ready: 'https://me:pw2@example.org/x'}\n",
			[]drover.ConfigChange{{Key: "hooks.ready", From: "https://***@example.org/x", To: "https://***@example.org/x"}, {Key: "notify.secret", From: "***", To: "***"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			from, to := read(test.from), read(test.to)
			if diff := cmp.Diff(test.want, from.Changes(to)); diff != "" {
				t.Error(diff)
			}
			if same := from.Hash() == to.Hash(); same != (test.want == nil) && test.name != "a secret is never shown" {
				t.Errorf("equal hashes: %v", same)
			}
		})
	}
	t.Run("a file read with it changes with its text", func(t *testing.T) {
		const text = cloud + "pools: {web: {size: 1, cloud_init: a.yaml}}\n"
		before := read(text)
		if err := os.WriteFile(filepath.Join(dir, "a.yaml"), []byte("#cloud-config\nruncmd: [x]\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		got := before.Changes(read(text))
		if len(got) != 1 || got[0].Key != "pools.web.cloud_init" || got[0].From == got[0].To {
			t.Errorf("got %v", got)
		}
	})
}
