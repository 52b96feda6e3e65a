package budget

import (
	"time"

	"drover"
)

// Window is a kind of calendar period (UTC) in which money is counted.
type Window int

// The windows.
const (
	Hourly Window = iota
	Daily
	Monthly
	windows // their number
)

func (w Window) String() string { return [windows]string{"hourly", "daily", "monthly"}[w] }

// shortest returns the length of the shortest such window.
func (w Window) shortest() time.Duration {
	return [windows]time.Duration{time.Hour, 24 * time.Hour, 28 * 24 * time.Hour}[w]
}

// begin returns the start of the window that contains a moment.
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

// end returns the end of the window that starts at begin.
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

// Begins returns the starts of recent windows whose sums may still be needed: this hour, the days of this month, and
// the last twelve months.
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
