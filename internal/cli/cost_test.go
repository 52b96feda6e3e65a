package cli

import (
	"bytes"
	"testing"
	"time"

	"drover"
)

func TestTimeFlag(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"2026-11-22T08:00:00+02:00": now.Add(-6 * time.Hour),
		"2026-11-22":                now.Add(-12 * time.Hour),
		"36h":                       now.Add(-36 * time.Hour),
		"7d":                        now.AddDate(0, 0, -7),
		"1.5d":                      now.Add(-36 * time.Hour),
		"0d":                        now,
	} {
		if got, err := timeFlag("since", text, now); err != nil || got != drover.TimeOf(want) {
			t.Errorf("%s is %v, want %v: %v", text, got, want, err)
		}
	}
	for _, text := range []string{"yesterday", "-1h", "-1d", "d", "nand", "infd", "1h30d", "30000d", "220000d", "2026-13-01"} {
		if got, err := timeFlag("since", text, now); drover.KindOf(err) != drover.KindInvalid {
			t.Errorf("%s is %v: %v", text, got, err)
		}
	}
}

func TestCostsByName(t *testing.T) {
	var out bytes.Buffer
	a := &app{out: &out, output: outputName}
	err := a.showCosts(drover.Costs{By: drover.CostByUser, Lines: []drover.CostLine{{Key: "ada", Cost: 2}}, Others: &drover.CostLine{Cost: 1}})
	if err != nil || out.String() != "ada\n" {
		t.Errorf("%q, want only the name of a user: %v", out.String(), err)
	}
}
