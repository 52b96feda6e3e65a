package kit_test

import (
	"encoding/json"
	"strings"
	"testing"

	"drover"
	"drover/driver/kit"
)

// itself is read by a method of its own, which passes over what it does not know.
type itself struct{ Size map[string]int }

// UnmarshalJSON reads it.
func (i *itself) UnmarshalJSON(text []byte) error {
	type plain itself
	return json.Unmarshal(text, (*plain)(i))
}

func TestTemplate(t *testing.T) {
	of := kit.Template{Hint: "100 % of it", Given: []string{"zone", "plan.market", "disks.boot"}, Use: "use zones"}
	type fields struct {
		IPv6 bool
		Zone string
		Plan map[string]string
		Disk []map[string]any `json:"disks"`
	}
	t.Run("says what there is a field for", func(t *testing.T) {
		var into fields
		if err := of.Read("", &into); err != nil || into.IPv6 {
			t.Error(err)
		}
		if err := of.Read(`{"ipv6": true, "zone": null, "disks": [{"boot": false}, {"size": 1}]}`, &into); err != nil || !into.IPv6 {
			t.Error(err)
		}
	})
	for name, c := range map[string]struct{ raw, message, hint string }{
		"what there is no field for":           {`{"ipv7": true}`, "ipv7", of.Hint},
		"what is no JSON":                      {`{`, "read the template", of.Hint},
		"what Drover gives":                    {`{"Zone": "a"}`, "the template sets zone", of.Use},
		"what Drover gives, within":            {`{"plan": {"MARKET": "spot"}}`, "the template sets plan.market", of.Use},
		"what Drover gives, in one of several": {`{"disks": [{}, {"boot": true}]}`, "the template sets disks.boot", of.Use},
	} {
		t.Run("cannot say "+name, func(t *testing.T) {
			e := drover.AsError(of.Read(c.raw, &fields{}), "")
			if e.Kind != drover.KindInvalid || !strings.Contains(e.Message, c.message) || e.Hint != c.hint {
				t.Errorf("%+v", e)
			}
		})
	}
	t.Run("that is read by a method of its own has no other fields, either", func(t *testing.T) {
		if err := of.Read(`{"Size": {"a": 1}}`, &itself{}); err != nil {
			t.Error(err)
		}
		if err := of.Read(`{"Size": {"a": 1}, "Colour": 2}`, &itself{}); drover.KindOf(err) != drover.KindInvalid || !strings.Contains(err.Error(), "Colour") {
			t.Error(err)
		}
	})
}
