package config

import (
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // includes the time zones in the binary

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/robfig/cron/v3"

	"drover"
)

// Scheduled gives a pool another number at certain times.
type Scheduled struct {
	Cron     Cron     `yaml:"cron,required" doc:"the times, as in a crontab: minute, hour, day of the month, month, day of the week"`
	TimeZone TimeZone `yaml:"time_zone" doc:"the time zone, such as Europe/Berlin; default: UTC"`
	To       int      `yaml:"to,required" min:"0" max:"100000" doc:"the pool's size, floor or spare from then on"`
}

// Cron is a recurring time, in five fields.
type Cron string

// cronFields excludes seconds, and words such as @every, whose times depend on the time of the query.
var cronFields = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)

func (c *Cron) decodeWord(d *decoder, n *node) {
	if !isCron(n.text) {
		d.add(n, quote(n.text)+" is not a valid cron expression", `write "0 8 * * mon-fri" for eight o'clock on working days`)
		return
	}
	*c = Cron(n.text)
}

// isCron refuses time zones before parsing: the parser panics on one with nothing after it.
func isCron(text string) bool {
	if strings.Contains(text, "TZ=") {
		return false
	}
	_, err := cronFields.Parse(text)
	return err == nil
}

func (Cron) schema() *jsonschema.Schema { return &jsonschema.Schema{Type: "string"} }

// TimeZone is the name of a time zone; empty: UTC.
type TimeZone string

func (z *TimeZone) decodeWord(d *decoder, n *node) {
	if _, err := time.LoadLocation(n.text); err != nil || n.text == "Local" {
		d.add(n, "there is no time zone "+quote(n.text), "write its name in the tz database, such as Europe/Berlin")
		return
	}
	*z = TimeZone(n.text)
}

func (TimeZone) schema() *jsonschema.Schema { return &jsonschema.Schema{Type: "string"} }

// longestLookBack is longer than the longest gap between two times of a schedule: from one February 29 to the next.
const longestLookBack = 9 * 366 * 24 * time.Hour

// around returns the schedule's last time, at now or before, and its next; zero: never.
func (s Scheduled) around(now time.Time) (last, next time.Time) {
	zone, err := time.LoadLocation(string(s.TimeZone))
	if err != nil {
		panic(err) // reading rejects such a time
	}
	times, err := cronFields.Parse(string(s.Cron))
	if err != nil {
		panic(err)
	}
	now = now.In(zone)
	for back := time.Minute; back < longestLookBack && last.IsZero(); back *= 2 {
		for t := following(times, now.Add(-back)); !t.IsZero() && !t.After(now); t = following(times, t) {
			last = t
		}
	}
	return last, following(times, now)
}

// following returns the first of the times after t. A time that the clocks skip, when they go forward, is moved by an
// hour: cron leaves it out, so that a pool would keep its number for a day more.
func following(times cron.Schedule, t time.Time) time.Time {
	shown := time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
	for face := times.Next(shown.Add(-time.Hour)); !face.IsZero(); face = times.Next(face) {
		at := time.Date(face.Year(), face.Month(), face.Day(), face.Hour(), face.Minute(), 0, 0, t.Location())
		if !at.After(t) {
			continue
		}
		if next := times.Next(t); next.Before(at) { // a time that comes twice
			return next
		}
		return at
	}
	return time.Time{}
}

// at returns the pool at a time by its schedule, and when that changes next; zero: never.
func (p Pool) at(now time.Time) (_ Pool, next time.Time) {
	latest := time.Time{}
	for i := range p.Schedule {
		last, then := p.Schedule[i].around(now)
		if !last.IsZero() && !last.Before(latest) { // the last of those at the same time wins
			latest = last
			p.set(&p.Schedule[i].To)
		}
		if !then.IsZero() && (next.IsZero() || then.Before(next)) {
			next = then
		}
	}
	return p, next
}

// Numbers returns the highest and the lowest number of instances that the pool keeps at any time, by its size or floor
// and its schedule.
func (p Pool) Numbers() (most, least int) {
	kind, count := p.Kind()
	if kind != drover.PoolSize && kind != drover.PoolFloor {
		return 0, 0
	}
	most, least = count, count
	for _, s := range p.Schedule {
		most, least = max(most, s.To), min(least, s.To)
	}
	return most, least
}

// set gives the pool another number.
func (p *Pool) set(count *int) {
	switch {
	case p.Floor != nil:
		p.Floor = count
	case p.Spare != nil:
		p.Spare = count
	default:
		p.Size = count
	}
}

// At returns the configuration at a time by its pools' schedules, and when they change it next; zero: never.
func (c *Config) At(now time.Time) (_ *Config, next time.Time) {
	then := *c
	then.Pools = nil
	for _, p := range c.Pools {
		p, change := p.at(now)
		then.Pools = append(then.Pools, p)
		if !change.IsZero() && (next.IsZero() || change.Before(next)) {
			next = change
		}
	}
	return &then, next
}

// checkSchedule rejects numbers that the pool cannot have.
func (c *Config) checkSchedule(f *faults, n *node, p Pool, most int) {
	for i, s := range p.Schedule {
		at := n.find("schedule", strconv.Itoa(i), "to")
		switch {
		case p.Max > 0 && s.To > p.Max:
			f.addf(at, "%d is more than max (%d)", s.To, p.Max)
		case s.To > most:
			f.add(at, strconv.Itoa(s.To)+" instances exceed the total max_instances of the pool's clouds, "+strconv.Itoa(most), "raise max_instances")
		}
	}
}
