package cli

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"drover"
	"drover/internal/human"
)

// numbers is a listing of numbers with their names and sizes.
var numbers = listing[int]{
	name: func(n int) string { return fmt.Sprint(n) },
	none: "none",
	columns: []column[int]{
		{title: "N", text: func(n int) string { return fmt.Sprint(n) }, right: true},
		{title: "STATE", text: func(n int) string { return map[bool]string{true: "ok", false: ""}[n < 10] }, color: func(int) color { return green }},
		{title: "MORE", text: func(n int) string { return "x" }, wide: true},
		{title: "LAST", text: func(n int) string { return map[bool]string{true: "é", false: "z"}[n > 1] }},
	},
}

func TestTable(t *testing.T) {
	show := func(a *app, items []int) string {
		var out bytes.Buffer
		a.out = &out
		if err := printList(a, numbers, each(items)); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	for _, c := range []struct {
		name string
		a    *app
		want string
	}{
		{"aligns columns", &app{}, " N  STATE  LAST\n 1  ok     z\n20         é\n"},
		{"shows more columns with -o wide", &app{output: outputWide}, " N  STATE  MORE  LAST\n 1  ok     x     z\n20         x     é\n"},
		{"colours only states, without affecting alignment", &app{color: true}, " N  STATE  LAST\n 1  \x1b[32mok\x1b[0m     z\n20         é\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := show(c.a, []int{1, 20}); got != c.want {
				t.Errorf("got\n%q, not\n%q", got, c.want)
			}
		})
	}
	t.Run("writes the start of a long list before its end", func(t *testing.T) {
		var out bytes.Buffer
		early := 0
		endless := func(yield func(int, error) bool) {
			for n := range drover.MaxPage + 1 {
				if !yield(n, nil) {
					return
				}
			}
			early = out.Len()
		}
		if err := printList(&app{out: &out}, numbers, endless); err != nil || early == 0 || out.Len() <= early {
			t.Errorf("%d of %d bytes were written before the end, %v", early, out.Len(), err)
		}
	})
}

func TestWords(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 59 * time.Second: "59s", 192 * time.Second: "3m12s", time.Hour: "1h0m", 49 * time.Hour: "2d1h",
	} {
		if got := human.Age(d); got != want {
			t.Errorf("%v: %s, not %s", d, got, want)
		}
	}
	for b, want := range map[drover.Bytes]string{0: "0", 512: "512", 1536: "1.5Ki", drover.GiB: "1Gi", 24684092 * drover.KiB: "23.5Gi"} {
		if got := human.Size(b); got != want {
			t.Errorf("%d: %s, not %s", b, got, want)
		}
	}
	for rate, want := range map[int64]string{0: "", 68: "0.0068%/hour", 25_000: "2.5%/hour", 125_000: "12.5%/hour"} {
		if got := interruptionWords(drover.Offer{Interruptions: rate}); got != want {
			t.Errorf("%d: %s, not %s", rate, got, want)
		}
	}
	for word, want := range map[string]string{"": "''", "plain-1.txt": "plain-1.txt", "it's": `'it'\''s'`, "$(x)": "'$(x)'"} {
		if got := quoted(word); got != want {
			t.Errorf("%s: %s, not %s", word, got, want)
		}
	}
}
