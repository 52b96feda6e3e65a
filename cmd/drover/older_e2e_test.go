//go:build e2e

package main

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestAnOlderDatabase puts a backup back beside jobs that were begun after it was made, twice.
func TestAnOlderDatabase(t *testing.T) {
	const jobs = 60
	p := newDaemonPlace(t, ", idle_timeout: 2s", "")
	folder := p.witnesses(jobs, "500ms-4s", "")
	p.write("drover.yaml", p.configuration(", idle_timeout: 2s", ""))
	p.drover("submit", "batch.yaml")
	p.waitBegun(folder, 4)
	copied := p.backUp()
	for _, more := range []int{16, 24} {
		p.waitBegun(folder, more)
		p.process.kill()
		p.putBack(copied)
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

// backUp copies the records while a controller uses them.
func (p *daemonPlace) backUp() (copied string) {
	p.t.Helper()
	copied = filepath.Join(p.t.TempDir(), "backup.db")
	db, err := sql.Open("sqlite", p.file("drover.db"))
	if err == nil {
		_, err = db.Exec(`VACUUM INTO ?`, copied)
		db.Close()
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return copied
}

// putBack puts a copy in the place of the records.
func (p *daemonPlace) putBack(copied string) {
	p.t.Helper()
	text, err := os.ReadFile(copied)
	for _, name := range []string{"drover.db-wal", "drover.db-shm"} {
		os.Remove(p.file(name))
	}
	if err == nil {
		err = os.WriteFile(p.file("drover.db"), text, 0o600)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}
