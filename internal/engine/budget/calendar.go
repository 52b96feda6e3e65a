package budget

import (
	"time"

	"drover"
)

// Window is a stretch of the UTC calendar in which money is counted.
type Window int

// The windows.
const (
	Hourly Window = iota
	Daily
	Monthly
	windows // how many there are
)

func (w Window) String() string { return [windows]string{"hourly", "daily", "monthly"}[w] }

// shortest is how long the shortest of the windows is.
func (w Window) shortest() time.Duration {
	return [windows]time.Duration{time.Hour, 24 * time.Hour, 28 * 24 * time.Hour}[w]
}

// begin is when the window began that a moment is in.
func (w Window) begin(at drover.Time) drover.Time {
	t := at.Std()
	year, month, day := t.Date()
	switch w {
	case Hourly:
		return drover.TimeOf(t.Truncate(time.Hour))
	case Daily:
		return drover.TimeOf(time.Date(year, month, day, 0, 0, 0, 0, time.UTC))
	}
	return drover.TimeOf(time.Date(year, month, 1, 0, 0, 0, 0, time.UTC))
}

// end is when the window ends that began then.
func (w Window) end(begin drover.Time) drover.Time {
	t := begin.Std()
	switch w {
	case Hourly:
		return begin.Add(time.Hour)
	case Daily:
		return drover.TimeOf(t.AddDate(0, 0, 1))
	}
	return drover.TimeOf(t.AddDate(0, 1, 0))
}

// Begins is when the present windows began, and those of late whose sums may still be asked for: the days of this month, and the months of a year.
func Begins(now drover.Time) []drover.Time {
	begins := []drover.Time{Hourly.begin(now)}
	month := Monthly.begin(now)
	for day := month; day <= now; day = Daily.end(day) {
		begins = append(begins, day)
	}
	for range 12 {
		month = Monthly.begin(month - 1)
		begins = append(begins, month)
	}
	return begins
}
