package config

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// covers K3
func TestSchedule(t *testing.T) {
	c, err := Parse("t", []byte(`version: 1
clouds: {here: {driver: local, max_instances: 50}}
pools:
  web:
    spare: 1
    schedule:
      - {cron: "0 8 * * mon-fri", time_zone: Europe/Berlin, to: 10}
      - {cron: "0 20 * * mon-fri", time_zone: Europe/Berlin, to: 2}
      - {cron: "0 0 29 2 *", to: 29}
`), "")
	if err != nil {
		t.Fatal(err)
	}
	at := func(text string) time.Time {
		moment, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return moment
	}
	for _, is := range []struct {
		at, next string
		want     int
	}{
		{"2026-11-25T06:59:59Z", "2026-11-25T07:00:00Z", 2}, // a Wednesday in winter
		{"2026-11-25T07:00:00Z", "2026-11-25T19:00:00Z", 10},
		{"2026-11-28T12:00:00Z", "2026-11-30T07:00:00Z", 2},  // a Saturday
		{"2026-07-01T06:00:00Z", "2026-07-01T18:00:00Z", 10}, // in summer
		{"2028-02-29T00:00:00Z", "2028-02-29T07:00:00Z", 29},
	} {
		then, next := c.At(at(is.at))
		if _, count := then.Pools[0].Kind(); count != is.want || !next.Equal(at(is.next)) {
			t.Errorf("at %s: %d until %v, want %d until %s", is.at, count, next.UTC(), is.want, is.next)
		}
	}
	if _, count := c.Pools[0].Kind(); count != 1 {
		t.Errorf("the configuration itself has changed: %d", count)
	}
}

// covers K3
func TestAScheduleOnTheDaysOnWhichTheClocksChange(t *testing.T) {
	c, err := Parse("t", []byte(`version: 1
clouds: {here: {driver: local, max_instances: 50}}
pools:
  web:
    size: 1
    schedule:
      - {cron: "0 18 * * *", time_zone: Europe/Berlin, to: 10}
      - {cron: "30 2 * * *", time_zone: Europe/Berlin, to: 2}
`), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, day := range []struct {
		from  time.Time // eight o'clock in the evening before
		hours []int     // of ten instances from then on, then of two
	}{
		{time.Date(2026, 3, 27, 19, 0, 0, 0, time.UTC), []int{7, 15}},
		{time.Date(2026, 3, 28, 19, 0, 0, 0, time.UTC), []int{7, 14}},  // 02:30 is skipped
		{time.Date(2026, 10, 24, 18, 0, 0, 0, time.UTC), []int{7, 16}}, // 02:30 comes twice
	} {
		var hours []int
		last := 0
		for at := day.from; len(hours) < 3; at = at.Add(30 * time.Minute) {
			then, next := c.At(at)
			_, count := then.Pools[0].Kind()
			if !next.After(at) {
				t.Fatalf("at %v, the next change is at %v", at, next)
			}
			if count != last {
				hours, last = append(hours, 0), count
			}
			if at.Minute() == 0 {
				hours[len(hours)-1]++
			}
		}
		if !slices.Equal(hours[:2], day.hours) {
			t.Errorf("from %v: %v hours, want %v", day.from, hours[:2], day.hours)
		}
	}
}

func TestScheduleFaults(t *testing.T) {
	for entry, want := range map[string]string{
		`{cron: "@every 5m", to: 1}`:                             "is not a valid cron expression",
		`{cron: "TZ=UTC 0 8 * * *", to: 1}`:                      "is not a valid cron expression",
		`{cron: "0 25 * * *", to: 1}`:                            "is not a valid cron expression",
		`{cron: "0 8 * * *", time_zone: Europe/Atlantis, to: 1}`: "there is no time zone",
		`{cron: "0 8 * * *", to: 11}`:                            "exceed the total max_instances",
		`{cron: "0 8 * * *"}`:                                    "to is missing",
	} {
		_, err := Parse("t", []byte("version: 1\nclouds: {here: {driver: local}}\npools: {web: {size: 1, schedule: ["+entry+"]}}\n"), "")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", entry, err, want)
		}
	}
}
