package control

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drover"
	"drover/driver"
	"drover/internal/engine"
)

// attributed is a cloud with attributes of its own.
type attributed struct {
	driver.Cloud
	texts map[string]string
	err   error
}

func (c *attributed) Attribute(_ context.Context, name string) (string, error) {
	text, ok := c.texts[name]
	if !ok && c.err == nil {
		return "", drover.Errorf(drover.KindNotFound, "there is no attribute %s", name)
	}
	return text, c.err
}

// covers P4 P11
func TestAHookInAnAttributeIsFetchedAtEachFiring(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	told := filepath.Join(t.TempDir(), "told")
	cloud := &attributed{Cloud: f.cfg.Clouds[0].Driver, texts: map[string]string{}}
	f.cfg.Clouds[0].Driver = cloud
	f.cfg.Pools = map[string]Pool{"web": {Hooks: map[drover.Hook]string{drover.HookCreated: "attribute:here/on-create"}}}
	c := must(New(t.Context(), f.cfg))(t)
	fire := engine.Fire{Hook: drover.HookCreated, Name: "a", Cloud: "here", Zone: "z", Pool: "web"}
	says := func(word string) string {
		return "#!/bin/sh\necho " + word + " $NAME $ZONE $(stat -c %a \"$(dirname \"$0\")\") >>" + told + "\n"
	}
	for _, word := range []string{"first", "second"} {
		cloud.texts["on-create"] = says(word)
		fires(t, c, fire)
	}
	if got, want := string(must(os.ReadFile(told))(t)), "first a z 700\nsecond a z 700\n"; got != want {
		t.Errorf("the hooks wrote %q, want %q", got, want)
	}
	if left := must(filepath.Glob(filepath.Join(f.cfg.Spool, "hook-*")))(t); len(left) > 0 {
		t.Errorf("scripts are left: %v", left)
	}

	t.Run("retries a script that cannot be fetched now, gives up one that does not exist", func(t *testing.T) {
		for _, s := range []struct {
			err   error
			again bool
		}{{nil, false}, {drover.Errorf(drover.KindUnreachable, "no route"), true}} {
			clear(cloud.texts)
			cloud.err = s.err
			recordEvent(t, c, 1, fire)
			for _, h := range must(c.cfg.Store.Hooks(t.Context(), c.clock.now(), 10))(t) {
				c.runRow(t.Context(), h)
			}
			kept := must(c.cfg.Store.Hooks(t.Context(), c.clock.now().Add(engine.HookTime), 10))(t)
			if again := len(kept) > 0; again != s.again {
				t.Errorf("%v: retried is %v", s.err, again)
			}
		}
	})
	t.Run("removes what a killed controller left", func(t *testing.T) {
		left := filepath.Join(f.cfg.Spool, "hook-1")
		if err := os.Mkdir(left, 0o700); err != nil {
			t.Fatal(err)
		}
		c.sweepScripts()
		if _, err := os.Stat(left); !strings.Contains(err.Error(), "no such file") {
			t.Errorf("%v", err)
		}
	})
}
