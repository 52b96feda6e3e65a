package engine

import (
	"reflect"
	"strings"
	"testing"

	"drover"
)

func TestEveryEffectHasItsKindCloudAndInstance(t *testing.T) {
	effect := reflect.TypeFor[Effect]()
	for i := range effect.NumField() {
		field := effect.Field(i)
		if field.Name == "ID" {
			continue
		}
		var f Effect
		asked := reflect.New(field.Type.Elem())
		set := func(name string, v any) (there bool) {
			if there = asked.Elem().FieldByName(name).IsValid(); there {
				asked.Elem().FieldByName(name).Set(reflect.ValueOf(v))
			}
			return there
		}
		cloud, instance := set("Cloud", "c"), set("Instance", int64(7))
		reflect.ValueOf(&f).Elem().Field(i).Set(asked)
		if tag, _, _ := strings.Cut(field.Tag.Get("json"), ","); f.Kind() != tag {
			t.Errorf("%s is of kind %q but encoded as %q", field.Name, f.Kind(), tag)
		}
		if (f.CloudName() == "c") != cloud || (f.InstanceID() == 7) != instance {
			t.Errorf("%s is for cloud %q and instance %d", field.Name, f.CloudName(), f.InstanceID())
		}
	}
}

func TestEveryAnswerNamesItsEffect(t *testing.T) {
	for kind, decode := range decoders {
		body, err := decode([]byte(`{"effect": 7, "err": {"kind": "quota", "message": "m"}}`))
		if err != nil {
			t.Fatal(err)
		}
		v := reflect.ValueOf(body)
		want := int64(0)
		if v.FieldByName("Effect").IsValid() {
			want = 7
		}
		effect, failed := Answer(body)
		if fails := v.FieldByName("Err").IsValid(); effect != want || (failed != nil && failed.Kind == drover.KindQuota) != fails {
			t.Errorf("%s returned %[3]v for effect %[2]d", kind, effect, failed)
		}
		if (Event{Body: body}).Kind() != kind {
			t.Errorf("%T is of kind %q but encoded as %q", body, Event{Body: body}.Kind(), kind)
		}
	}
}
