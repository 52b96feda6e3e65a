package cli

import (
	"testing"
	"time"

	"drover"
)

func TestExplainShowsWhereTheLikelyRunTimeComesFrom(t *testing.T) {
	x := drover.Explanation{Subject: "17", Waiting: true, Count: 1, Likely: drover.Seconds(10 * time.Minute)}
	for _, c := range []struct {
		stated, learned bool
		want            string
	}{
		{false, false, "assumed until similar jobs have run; set expected for a better estimate"},
		{true, false, "from the job's expected time"},
		{false, true, "from the run times of earlier jobs"},
		{true, true, "from the job's expected time and the run times of earlier jobs"},
	} {
		x.Stated, x.Learned = c.stated, c.learned
		f := &fakeController{jobs: []drover.Job{aJob(17, "greet", drover.JobQueued)}, explained: []drover.Explanation{x}}
		f.serve(t)
		droverCommand(t, "explain", "17").want(t, 0, "\n  likely run time: about 10m0s, "+c.want+"\n", "")
	}
}
