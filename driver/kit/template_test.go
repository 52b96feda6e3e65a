package kit_test

import (
	"fmt"
	"strings"
	"testing"

	"drover"
	"drover/driver/kit"
)

func TestTemplate(t *testing.T) {
	of := kit.Template{Hint: "100 % of it", Given: []string{"zone", "plan.market", "disks.boot"}, Use: "use zones"}
	type fields struct {
		IPv6 bool
		Zone string
		Plan map[string]string
		Disk []map[string]any `json:"disks"`
	}
	t.Run("accepts known fields", func(t *testing.T) {
		var into fields
		if err := of.Read("", &into); err != nil || into.IPv6 {
			t.Error(err)
		}
		if err := of.Read(`{"ipv6": true, "zone": null, "disks": [{"boot": false}, {"size": 1}]}`, &into); err != nil || !into.IPv6 {
			t.Error(err)
		}
	})
	for name, c := range map[string]struct{ raw, message, hint string }{
		"an unknown field":                 {`{"ipv7": true}`, "ipv7", of.Hint},
		"invalid JSON":                     {`{`, "read the template", of.Hint},
		"a key that Drover sets":           {`{"Zone": "a"}`, "the template sets zone", of.Use},
		"a nested key that Drover sets":    {`{"plan": {"MARKET": "spot"}}`, "the template sets plan.market", of.Use},
		"a key that Drover sets in a list": {`{"disks": [{}, {"boot": true}]}`, "the template sets disks.boot", of.Use},
	} {
		t.Run("refuses "+name, func(t *testing.T) {
			e := drover.AsError(of.Read(c.raw, &fields{}), "")
			if e.Kind != drover.KindInvalid || !strings.Contains(e.Message, c.message) || e.Hint != c.hint {
				t.Errorf("%+v", e)
			}
		})
	}
	t.Run("a map accepts the keys of the example with values of their types", func(t *testing.T) {
		of := of
		of.Keys = `{"zone": "", "size": {"gib": 0, "labels": {"*": ""}}, "nics": [{"fast": true}]}`
		for raw, wrong := range map[string]string{
			`null`: "", `{"size": {"gib": 1, "labels": {"a": "b"}}, "nics": [{"fast": true}, {}], "old": null}`: "", `{"zone": "a"}`: "the template sets zone",
			`{"Size": {}}`: "Size is", `{"size": 1}`: "size is", `{"size": {"gib": "1"}}`: "size.gib is", `{"size": {"labels": {"a": 1}}}`: "size.labels.a is",
			`{"nics": [{}, {"slow": true}]}`: "nics.slow is", `[]`: "cannot unmarshal",
		} {
			var into map[string]any
			err := of.Read(raw, &into)
			if (drover.KindOf(err) == drover.KindInvalid) != (wrong != "") || !strings.Contains(fmt.Sprint(err), wrong) {
				t.Errorf("%s: %v", raw, err)
			}
		}
	})
}
