package cli

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"drover"
	"drover/internal/engine"
	"drover/internal/record"
)

// precise formats a time from a recording to the millisecond.
func precise(t drover.Time) string { return t.Std().Local().Format("2006-01-02 15:04:05.000") }

// maxBrief limits the description of an event.
const maxBrief = 240

// eventWords describes any event: "exited attempt 17.3/1, exit (code 3)".
func eventWords(ev engine.Event) string {
	return strings.TrimSpace(strings.ReplaceAll(ev.Kind(), "_", " ") + " " + brief(ev.Body))
}

// effectWords describes an effect and its target: "start attempt 17.3/1, instance 5".
func effectWords(e engine.Effect) string {
	v := reflect.ValueOf(e)
	var about []string
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.Pointer && !f.IsNil() {
			about = words(f.Elem(), func(name string) bool {
				return slices.Contains([]string{"attempt", "instance", "name", "cloud", "hook"}, name)
			})
		}
	}
	return strings.TrimSpace(strings.ReplaceAll(record.KindOf(e), "_", " ") + " " + strings.Join(about, ", "))
}

// outlineWords returns the kinds of a decision's writes and effects.
func outlineWords(outline string) string {
	writes, effects, _ := strings.Cut(outline, ";")
	said := make([]string, 0, 2)
	for _, part := range [][2]string{{"writes ", writes}, {"does ", effects}} {
		if part[1] != "" {
			said = append(said, part[0]+strings.ReplaceAll(strings.ReplaceAll(part[1], ",", ", "), "_", " "))
		}
	}
	if len(said) == 0 {
		return "no writes, no effects"
	}
	return strings.Join(said, "; ")
}

// brief describes any value in a few words: its non-zero fields, and the lengths of its lists.
func brief(of any) string {
	text := strings.Join(words(reflect.ValueOf(of), func(string) bool { return true }), ", ")
	if utf8.RuneCountInString(text) > maxBrief {
		text = string([]rune(text)[:maxBrief-1]) + "…"
	}
	return text
}

// words returns the non-zero fields of a struct, by their JSON names.
func words(v reflect.Value, want func(name string) bool) (all []string) {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return nil
	}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || v.Field(i).IsZero() || !want(name) {
			continue
		}
		all = append(all, word(strings.ReplaceAll(name, "_", " "), v.Field(i)))
	}
	return all
}

// word describes one field.
func word(name string, v reflect.Value) string {
	switch x := v.Interface().(type) {
	case drover.Time:
		return name + " " + precise(x)
	case time.Duration, fmt.Stringer:
		return fmt.Sprint(strings.TrimSuffix(name, " milli"), " ", x) // a MilliCPU is printed in vCPUs
	case *drover.Error:
		return name + " " + x.Message
	case drover.Reason:
		return name + " " + x.Text
	}
	switch v.Kind() {
	case reflect.Bool:
		return name
	case reflect.Slice:
		return fmt.Sprintf("%s: %d", name, v.Len())
	case reflect.Struct, reflect.Pointer:
		return name + " (" + strings.Join(words(v, func(string) bool { return true }), ", ") + ")"
	}
	return fmt.Sprint(name, " ", v.Interface())
}
