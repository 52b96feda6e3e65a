package forecast_test

import (
	"testing"
	"time"

	"drover/internal/engine/forecast"
)

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
