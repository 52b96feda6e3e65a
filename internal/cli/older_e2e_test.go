//go:build e2e

package cli

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestAnOlderDatabase restores a backup twice while jobs run that started after the backup. Jobs that have succeeded do
// not run again.
// covers D9 P8
func TestAnOlderDatabase(t *testing.T) {
	const jobs = 60
	p := newDaemonPlace(t, ", idle_timeout: 2s", "")
	folder := p.witnesses(jobs, "500ms-4s", "")
	p.write("drover.yaml", p.configuration(", idle_timeout: 2s", ""))
	p.write("batch.yaml", fmt.Sprintf("jobs: [{name: w, array: %d, command: [witness, %s, 500ms-4s, made], outputs: [made], resources: {memory: 128Mi, disk: 16Mi}}]\n", jobs, folder))
	p.drover("submit", "batch.yaml")
	p.waitBegun(folder, 4)
	copied := backUp(t, p.file("drover.db"))
	succeeded := map[string]bool{}
	for _, more := range []int{16, 24} {
		p.waitBegun(folder, more)
		for _, index := range p.succeeded() {
			succeeded[fmt.Sprintf("1.%d", index)] = true
		}
		p.process.kill()
		putBack(t, p.file("drover.db"), copied)
		began := time.Now()
		p.serve()
		eventually(t, 30*time.Second, "the log reports that the records are an older copy", func() bool { return strings.Contains(p.process.err.String(), "they lack changes") })
		eventually(t, time.Minute, "jobs start again", func() bool { return strings.Contains(p.process.err.String(), "the records are current again") })
		t.Logf("jobs start again %v after the backup was put back", time.Since(began).Round(100*time.Millisecond))
	}
	p.drover("wait", "--batch", "batch")
	all := testimony(t, folder)
	if len(all) != jobs {
		t.Errorf("%d jobs began, not %d", len(all), jobs)
	}
	for job, w := range all {
		if len(w.ends) == 0 || w.overlaps > 0 {
			t.Errorf("job %s began %q, ended %q, and overlapped %d times", job, w.begins, w.ends, w.overlaps)
		}
		if succeeded[job] && len(w.ends) > 1 {
			t.Errorf("job %s had succeeded, but ended again: %q", job, w.ends)
		}
	}
	if len(succeeded) == 0 {
		t.Error("no job had succeeded when the backup was put back")
	}
	outputs := t.TempDir()
	p.drover("outputs", "1", "--to", outputs)
	if files, err := filepath.Glob(filepath.Join(outputs, "*", "made")); err != nil || len(files) != jobs {
		t.Errorf("%d files from %d jobs, error %v", len(files), jobs, err)
	}
	eventually(t, time.Minute, "every instance is gone", func() bool { return len(p.instances()) == 0 })
	eventually(t, 10*time.Second, "no attempt is still running", func() bool { return p.witnessing() == 0 })
}

// succeeded returns the elements of job 1 that have succeeded according to the records.
func (p *daemonPlace) succeeded() (indexes []int) {
	p.t.Helper()
	db, err := sql.Open("sqlite", "file:"+p.file("drover.db")+"?mode=ro")
	if err != nil {
		p.t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.Query(`SELECT idx FROM elements WHERE job = 1 AND state = 'succeeded'`)
	if err != nil {
		p.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var index int
		if err := rows.Scan(&index); err != nil {
			p.t.Fatal(err)
		}
		indexes = append(indexes, index)
	}
	return indexes
}
