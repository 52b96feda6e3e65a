package middleware_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"drover"
	"drover/driver"
	"drover/driver/middleware"
)

// covers K10 P7
func TestCustomize(t *testing.T) {
	request := driver.CreateRequest{
		Name: "n", Tags: map[string]string{driver.TagFleet: "f", driver.TagPool: "p"},
		Candidates: []driver.Candidate{{ProviderType: "a", Zone: "z1"}, {ProviderType: "a", Zone: "z2"}, {ProviderType: "b", Zone: "z1"}},
	}
	t.Run("templates and init texts are filled in, and other braces stay", func(t *testing.T) {
		g := &gallery{}
		c, err := middleware.Customize(g, middleware.Custom{Template: `{"a": "{project}/{name}-{pool}-{fleet}"}`, Init: "#!/bin/sh\necho {name} ${HOME}"})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := c.Create(t.Context(), request); err != nil {
			t.Fatal(err)
		}
		got := []string{g.got.Template, g.got.UserInit.Reveal()}
		if diff := cmp.Diff([]string{`{"a": "acme/n-p-f"}`, "#!/bin/sh\necho n ${HOME}"}, got); diff != "" {
			t.Error(diff)
		}
		if len(g.got.Candidates) != 3 {
			t.Errorf("candidates: %v", g.got.Candidates)
		}
	})
	t.Run("a pool's init text is filled in, even if the cloud has none", func(t *testing.T) {
		g := &gallery{}
		c, err := middleware.Customize(g, middleware.Custom{})
		if err != nil {
			t.Fatal(err)
		}
		pooled := request
		pooled.PoolInit = drover.NewSecret("#!/bin/sh\necho {pool} {zone}")
		if _, _, err := c.Create(t.Context(), pooled); err != nil {
			t.Fatal(err)
		}
		if got := g.got.PoolInit.Reveal(); got != "#!/bin/sh\necho p z1" || g.got.UserInit.Reveal() != "" || len(g.got.Candidates) != 2 {
			t.Errorf("the pool's init is %q, for %v", got, g.got.Candidates)
		}
	})
	t.Run("a pool's template replaces the cloud's", func(t *testing.T) {
		g := &gallery{}
		c, err := middleware.Customize(g, middleware.Custom{Template: "{zone}"})
		if err != nil {
			t.Fatal(err)
		}
		pooled := request
		pooled.Template = "of {pool}"
		if _, _, err := c.Create(t.Context(), pooled); err != nil {
			t.Fatal(err)
		}
		if g.got.Template != "of p" || len(g.got.Candidates) != 3 {
			t.Errorf("the template is %q, for %v", g.got.Template, g.got.Candidates)
		}
	})
	t.Run("a text that contains the zone keeps only candidates in that zone", func(t *testing.T) {
		g := &gallery{}
		c, err := middleware.Customize(g, middleware.Custom{Template: "{zone}"})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := c.Create(t.Context(), request); err != nil {
			t.Fatal(err)
		}
		if g.got.Template != "z1" || len(g.got.Candidates) != 2 || g.got.Candidates[1].ProviderType != "b" {
			t.Errorf("got %q for %v", g.got.Template, g.got.Candidates)
		}
	})
	t.Run("with a text that contains the zone, one call tries only one candidate", func(t *testing.T) {
		for text, want := range map[string]bool{"": true, "#!/bin/sh\necho {name}": true, "#!/bin/sh\necho {zone}": false} {
			c, err := middleware.Customize(capable{can: driver.Capabilities{ManyCandidates: true}}, middleware.Custom{Init: text})
			if err != nil || c.Capabilities().ManyCandidates != want {
				t.Errorf("%q: %v", text, err)
			}
		}
	})
	for name, refused := range map[string]struct {
		custom middleware.Custom
		can    driver.Capabilities
		want   string
	}{
		"a template for a driver without templates": {middleware.Custom{Template: "{}"}, driver.Capabilities{}, "template"},
		"an init text of unknown format":            {middleware.Custom{Init: "apt install x"}, driver.Capabilities{Init: driver.InitCloud}, "apt install x"},
		"cloud-config without cloud-init":           {middleware.Custom{Init: "#cloud-config\n"}, driver.Capabilities{}, "no cloud-init"},
		"a boot hook for first-boot scripts":        {middleware.Custom{Init: "#cloud-boothook\n#!/bin/sh\n"}, driver.Capabilities{Init: driver.InitShell}, "no cloud-init"},
		"an init text beyond the cloud's limit":     {middleware.Custom{Init: "#!" + strings.Repeat("x", 13<<10)}, driver.Capabilities{MaxInit: 16 << 10}, "16384"},
	} {
		t.Run(name+" is refused before any create", func(t *testing.T) {
			_, err := middleware.Customize(capable{can: refused.can}, refused.custom)
			if drover.KindOf(err) != drover.KindInvalid || !strings.Contains(err.Error(), refused.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

type capable struct {
	driver.Cloud
	can driver.Capabilities
}

func (c capable) Capabilities() driver.Capabilities { return c.can }
