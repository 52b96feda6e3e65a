package drover_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"drover"
)

// covers D8
func TestSecret(t *testing.T) {
	const text = "hunter2"
	s := drover.NewSecret(text)
	leaks := func(t *testing.T, how, printed string) {
		t.Helper()
		// 68756e74657232 is the text as %x shows it.
		if strings.Contains(printed, text) || strings.Contains(strings.ToLower(printed), "68756e74657232") || strings.Contains(printed, "104 117 110") {
			t.Errorf("%s shows it: %s", how, printed)
		}
	}

	t.Run("Reveal returns the text", func(t *testing.T) {
		if s.Reveal() != text || (drover.Secret{}).Reveal() != "" {
			t.Error("it does not, or the zero Secret is not empty")
		}
	})
	t.Run("no verb shows it, alone, inside another value or behind a pointer", func(t *testing.T) {
		type holder struct {
			Shown  drover.Secret
			hidden drover.Secret // fmt does not call the methods of unexported fields
		}
		for _, verb := range strings.Fields("%v %+v %#v %s %q %x %X %d %o %b %c %U %e %t %p %T %6.2f %-20s") {
			for _, value := range []any{s, &s, []drover.Secret{s}, map[string]drover.Secret{"a": s}, holder{s, s}, &holder{s, s}, struct{ any }{s}} {
				leaks(t, fmt.Sprintf("%s of %T", verb, value), fmt.Sprintf(verb, value))
			}
			if printed := fmt.Sprintf(verb, s); printed != "***" && verb != "%T" && verb != "%p" {
				t.Errorf("%s gives %q", verb, printed)
			}
		}
		leaks(t, "Println", fmt.Sprintln(s, &s))
	})
	t.Run("JSON does not show it, as a value or as a key", func(t *testing.T) {
		out, err := json.Marshal(map[string]any{"value": s, "pointer": &s, "key": map[drover.Secret]int{s: 1}})
		if err != nil || strings.Count(string(out), "***") != 3 {
			t.Errorf("got %s, %v", out, err)
		}
		leaks(t, "JSON", string(out))
	})
	t.Run("an error made from it does not show it", func(t *testing.T) {
		leaks(t, "Errorf", errors.Join(fmt.Errorf("login as %v with %s", "me", s), drover.Errorf(drover.KindInvalid, "key %q", s)).Error())
	})
	t.Run("structured logs do not show it", func(t *testing.T) {
		var out bytes.Buffer
		for _, h := range []slog.Handler{slog.NewJSONHandler(&out, nil), slog.NewTextHandler(&out, nil)} {
			slog.New(h).Info("message", "secret", s, "pointer", &s, "group", slog.GroupValue(slog.Any("in", s)), "list", []drover.Secret{s})
		}
		leaks(t, "slog", out.String())
		if strings.Count(out.String(), "***") < 6 {
			t.Errorf("its marks are missing: %s", out.String())
		}
		if v := slog.AnyValue(s).Resolve(); v.Kind() != slog.KindString || v.String() != "***" {
			t.Errorf("a handler gets %v", v.Kind())
		}
	})
}
