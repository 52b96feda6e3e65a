package control

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"drover"
	"drover/internal/engine"
)

// forge is a job's command. It fakes attempts of job 1, which runs on another instance, as if they had succeeded on
// this one, and kills the runner, which finds them when it restarts. All jobs of an instance and its runner run as one
// user.
const forge = `cd ../..
for number in 1 500 9223372036854775806 9223372036854775807; do
	mkdir -p 1-$number/work
	echo forged >1-$number/stdout
	: >1-$number/stderr
	echo '{"attempt":{"id":"1/'$number'"}}
{"exit":{"code":0,"stdout":"forged\n","stdout_len":7}}' >1-$number/journal
done
mkdir -p 900-1/work
echo '{"attempt":{"id":"900/1"}}
{"begun":{"boot":"another","pid":1}}' >900-1/journal
kill -9 $(cat ../daemon.lock)
`

// covers D14
func TestAJobThatForgesAnotherJobsEndHarmsOnlyItsOwnInstance(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.cfg.Setup.Settings.Clouds[0].MaxInstances = 3
	f.cfg.Setup.Settings.Lifecycle.UseOnce = true
	c, stop := f.begin()
	gates := t.TempDir()
	wait := func(gate string) string {
		return "while [ ! -e " + filepath.Join(gates, gate) + " ]; do sleep 0.02; done; "
	}
	open := func(gate string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(gates, gate), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f.submit(c, wait("victim")+"echo true", wait("forge")+forge+wait("forger")+"echo forger")
	f.until(c, "both run", runs(2))
	open("forge")
	f.until(c, "the forger's instance drains", func(e *engine.Engine) bool {
		forged := 0
		for _, in := range e.State().Instances {
			if in.Unhealthy != nil && in.Unhealthy.Cause == drover.ReasonForged {
				forged++
			}
		}
		return forged == 1
	})
	f.until(c, "no record is doubted and both still run", func(e *engine.Engine) bool { return e.StaleRecords() == nil && runs(2)(e) })
	if err := stop(); err != nil {
		t.Fatal(err)
	}

	c, stop = f.begin()
	f.submit(c, "echo honest")
	f.until(c, "a new job starts and ends", func(*engine.Engine) bool {
		return must(f.store.Counts(t.Context()))(t)[drover.JobSucceeded] == 1
	})
	open("victim")
	open("forger")
	f.until(c, "all jobs are final", f.allFinal)
	sum := must(f.store.Summary(t.Context(), drover.TimeOf(time.Now())))(t)
	if out := f.log("a.out"); sum.Succeeded != 3 || sum.Attempts != 3 || out != "true\n" {
		t.Errorf("%d succeeded in %d attempts, want 3 in 3; the victim wrote %q", sum.Succeeded, sum.Attempts, out)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
}
