package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"drover"
	"drover/internal/config"
)

func TestAReloadSees(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("key", "one")
	write("token", "one")
	write("login", "one")
	load := func(text string) *config.Config {
		c, err := config.Parse("drover.yaml", []byte("version: 1\nfleet: lab\nclouds: {there: {driver: any, token: file:token, region: a, ssh: {keys: [login]}}}\n"+text), dir)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	const notify = "notify: {secret: file:key}\n"
	before := load(notify)
	same := func(what string, c *config.Config, whole, cloud bool) {
		t.Helper()
		if c.Same(before) != whole || c.Clouds[0].Same(before.Clouds[0]) != cloud {
			t.Errorf("%s: the same %v, its cloud %v", what, c.Same(before), c.Clouds[0].Same(before.Clouds[0]))
		}
	}
	same("nothing changed", load(notify+"# a comment\n"), true, true)
	write("key", "two")
	same("another secret in the same file", load(notify), false, true)
	write("key", "one")
	same("no secret", load(""), false, true)
	write("token", "two")
	same("another secret of a driver", load(notify), false, false)
	write("token", "one")
	write("login", "two")
	same("another login key in the same file", load(notify), false, false)
}

func TestAPipeWithoutAWriterBlocksNobody(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	_, whole := config.Load(pipe)
	_, parts := config.Parse("drover.yaml", []byte("version: 1\nclouds: {here: {driver: local}}\nnotify: {secret: file:pipe}\npools: {web: {size: 1, cloud_init: ./pipe}}\n"), dir)
	if whole == nil || !strings.Contains(whole.Error(), "a pipe that no program is writing to") {
		t.Errorf("a configuration: %v", whole)
	}
	if parts == nil || !strings.Contains(parts.Error(), "pipe is empty") {
		t.Errorf("files that a configuration names: %v", parts)
	}
}

func TestOnlyARelativePathIsCalledRelative(t *testing.T) {
	for path, hint := range map[string]string{"nothing.yaml": "the path is relative to the current folder", filepath.Join(t.TempDir(), "nothing.yaml"): ""} {
		if _, err := config.Load(path); err == nil || drover.AsError(err, "").Hint != hint {
			t.Errorf("%s: %v", path, err)
		}
	}
}
