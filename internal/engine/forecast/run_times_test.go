package forecast_test

import (
	"testing"
	"time"

	"drover/internal/engine/forecast"
)

func TestAJobIsNotExpectedToRunBeyondItsTimeout(t *testing.T) {
	f := forecast.New(forecast.Stats{})
	for _, said := range []time.Duration{0, 2 * time.Hour} {
		if mean := f.RunTime(forecast.Job{User: "ada", Expected: said, Timeout: time.Minute}).Alone.Mean(); mean > time.Minute*101/100 {
			t.Errorf("with a timeout of 1m and an estimate of %v, the mean is %v", said, mean)
		}
	}
	if mean := f.RunTime(forecast.Job{User: "ada", Timeout: 24 * time.Hour}).Alone.Mean(); mean > 2*time.Hour {
		t.Errorf("with a timeout of a day, the mean is %v", mean)
	}
}

func TestRunTimesAreAssumedUntilAJobHasRun(t *testing.T) {
	f := forecast.New(forecast.Stats{})
	job := forecast.Job{User: "ada", Name: "fit"}
	before := f.RunTime(job).Mean
	if f.Learned() || before <= 0 {
		t.Errorf("before any job has run, the mean is %v, learned: %v", before, f.Learned())
	}
	f.Ran(forecast.Job{User: "bob", Name: "other"}, time.Second, 100)
	if after := f.RunTime(job).Mean; !f.Learned() || after >= before {
		t.Errorf("after another user's short job, the mean is %v instead of %v, learned: %v", after, before, f.Learned())
	}
}
