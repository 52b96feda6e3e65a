package chart

import (
	"math"
	"strconv"
	"time"
)

// scale is an axis of values from 0 up, with a grid line at each step.
type scale struct {
	step  float64
	steps int
}

// mostRules is the most grid lines that a diagram has, not counting that of 0.
const mostRules = 5

// scaleOf returns the scale with the smallest round step that includes the largest value.
func scaleOf(largest float64) scale {
	if !(largest > 0) || math.IsInf(largest, 0) {
		largest = 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(largest/mostRules)))
	step := unit
	for _, round := range []float64{2, 5, 10} {
		if largest <= step*mostRules {
			break
		}
		step = unit * round
	}
	return scale{step, int(math.Ceil(largest/step - 1e-9))}
}

func (s scale) top() float64 { return s.step * float64(s.steps) }

func (s scale) values() (all []float64) {
	for i := range s.steps + 1 {
		all = append(all, s.step*float64(i))
	}
	return all
}

// label writes a value with as many digits as the step needs.
func (s scale) label(value float64) string {
	if s.top() >= 1e7 {
		return strconv.FormatFloat(value, 'g', 3, 64)
	}
	digits := max(0, int(-math.Floor(math.Log10(s.step)+1e-9)))
	return strconv.FormatFloat(value, 'f', digits, 64)
}

// strides are the possible distances between two labels of the time axis, with their formats.
var strides = []struct {
	every  time.Duration
	layout string
}{
	{time.Second, time.TimeOnly}, {5 * time.Second, time.TimeOnly}, {15 * time.Second, time.TimeOnly},
	{time.Minute, "15:04"}, {5 * time.Minute, "15:04"}, {10 * time.Minute, "15:04"}, {30 * time.Minute, "15:04"}, {time.Hour, "15:04"}, {3 * time.Hour, "01-02 15:04"},
	{6 * time.Hour, "01-02 15:04"}, {12 * time.Hour, "01-02 15:04"}, {day, time.DateOnly}, {2 * day, time.DateOnly}, {7 * day, time.DateOnly}, {14 * day, time.DateOnly},
	{28 * day, time.DateOnly}, {91 * day, time.DateOnly}, {365 * day, time.DateOnly}, {5 * 365 * day, time.DateOnly},
}

const (
	day        = 24 * time.Hour
	mostLabels = 9
)

// moment is a label of the time axis.
type moment struct {
	time.Time
	label string
}

// times returns the round times in a span; only the first ones if the span is very long.
func times(begin, end time.Time) (all []moment) {
	stride := strides[len(strides)-1]
	for _, s := range strides {
		if end.Sub(begin)/s.every <= mostLabels {
			stride = s
			break
		}
	}
	at := begin.UTC().Truncate(stride.every)
	for ; !at.After(end) && len(all) < 2*mostLabels; at = at.Add(stride.every) {
		if !at.Before(begin) {
			all = append(all, moment{at, at.Format(stride.layout)})
		}
	}
	return all
}
