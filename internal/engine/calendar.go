package engine

import (
	"time"

	"drover"
)

// window is a kind of stretch of the UTC calendar in which money is counted.
type window int

// The windows.
const (
	hourly window = iota
	daily
	monthly
	windows // how many there are
)

func (w window) String() string { return [windows]string{"hourly", "daily", "monthly"}[w] }

// begin is when the window began that a moment is in.
func (w window) begin(at drover.Time) drover.Time {
	t := at.Std()
	year, month, day := t.Date()
	switch w {
	case hourly:
		return drover.TimeOf(t.Truncate(time.Hour))
	case daily:
		return drover.TimeOf(time.Date(year, month, day, 0, 0, 0, 0, time.UTC))
	}
	return drover.TimeOf(time.Date(year, month, 1, 0, 0, 0, 0, time.UTC))
}

// end is when the window ends that began then.
func (w window) end(begin drover.Time) drover.Time {
	t := begin.Std()
	switch w {
	case hourly:
		return begin.Add(time.Hour)
	case daily:
		return drover.TimeOf(t.AddDate(0, 0, 1))
	}
	return drover.TimeOf(t.AddDate(0, 1, 0))
}
