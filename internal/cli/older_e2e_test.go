//go:build e2e

package cli

import (
	"strings"
	"testing"
	"time"
)

// TestAnOlderDatabase puts a backup back beside jobs that were begun after it was made, twice.
// covers D9 P8
func TestAnOlderDatabase(t *testing.T) {
	const jobs = 60
	p := newDaemonPlace(t, ", idle_timeout: 2s", "")
	folder := p.witnesses(jobs, "500ms-4s", "")
	p.write("drover.yaml", p.configuration(", idle_timeout: 2s", ""))
	p.drover("submit", "batch.yaml")
	p.waitBegun(folder, 4)
	copied := backUp(t, p.file("drover.db"))
	for _, more := range []int{16, 24} {
		p.waitBegun(folder, more)
		p.process.kill()
		putBack(t, p.file("drover.db"), copied)
		p.serve()
		eventually(t, 30*time.Second, "it is said that the records are an older copy", func() bool { return strings.Contains(p.process.err.String(), "changes are missing") })
	}
	p.drover("wait", "--batch", "batch")
	all := testimony(t, folder)
	if len(all) != jobs {
		t.Errorf("%d jobs were begun, not %d", len(all), jobs)
	}
	for job, w := range all {
		if len(w.ends) == 0 || w.overlaps > 0 {
			t.Errorf("job %s began %q, ended %q, and overlapped %d times", job, w.begins, w.ends, w.overlaps)
		}
	}
	eventually(t, time.Minute, "every instance is gone", func() bool { return len(p.instances()) == 0 })
	eventually(t, 10*time.Second, "no attempt runs on", func() bool { return p.witnessing() == 0 })
}
