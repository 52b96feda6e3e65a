package web_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"drover"
	"drover/driver"
	"drover/internal/engine"
	"drover/internal/store"
)

// silent is a cloud that never lists its instances, so that they stay unknown and do not count as gone.
type silent struct{ driver.Cloud }

func (silent) Capabilities() driver.Capabilities { return driver.Capabilities{} }

func (silent) List(ctx context.Context, _ map[string]string) ([]driver.Instance, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (silent) Offerings(context.Context) (all []drover.Offering, err error) {
	for i := range 3000 {
		t := drover.InstanceType{Name: fmt.Sprint("type-", i/6), Resources: drover.Resources{CPU: drover.MilliCPU(1000 * (1 + i/6)), Memory: drover.Bytes(1+i/6) * drover.GiB, Arch: "amd64"}}
		all = append(all, drover.Offering{Cloud: "silent", Zone: fmt.Sprint("zone-", i%3), Type: t, Market: []drover.Market{drover.OnDemand, drover.Spot}[i%6/3], Price: drover.Money(1+i) * drover.Dollar / 100})
	}
	driver.SortOfferings(all)
	return all, nil
}

func (silent) Close() error { return nil }

// fillStore writes the records with SQL, since a million jobs would otherwise take too long. All are final, with an
// attempt each; a tenth are elements of an array, whose number it returns.
func fillStore(t *testing.T, path string, jobs, instances int) (array int64) {
	t.Helper()
	s, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Begin(t.Context(), "large"); err != nil {
		t.Fatal(err)
	}
	now := drover.TimeOf(time.Now())
	var writes []engine.Write
	for i := range instances {
		id := int64(i + 1)
		writes = append(writes, engine.Write{Instance: &engine.Instance{
			ID: id, Name: fmt.Sprint("i-", id), Cloud: "silent", ProviderID: fmt.Sprint("p-", id), Zone: fmt.Sprint("zone-", i%3), Type: drover.InstanceType{Name: fmt.Sprint("type-", i%40), Resources: drover.Resources{CPU: 4000, Memory: 8 * drover.GiB}},
			Market: drover.Spot, Price: drover.Dollar / 10, Resources: drover.Resources{CPU: 4000, Memory: 8 * drover.GiB}, State: drover.InstanceIdle, Idle: drover.IdleRun, Used: true,
			Asked: now.Add(-3 * time.Hour), Created: now.Add(-2 * time.Hour), Ready: now.Add(-time.Hour), IdleSince: now.Add(-time.Minute),
		}})
	}
	if err := s.Commit(t.Context(), writes); err != nil {
		t.Fatal(err)
	}
	s.Close()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	elements := jobs / 10
	single := jobs - elements
	array = int64(single + 1)
	const counted = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1) `
	const columns = `INSERT INTO jobs (number, submission, batch, user_name, name, first_index, last_index, cpu_milli, submitted, taken, state, queued, succeeded, failed, cancelled, ended, reason, spec, priority) `
	const spec = `{"name":"tile-%s","command":["sh","-c","a command that is about as long as they are"],"resources":{"cpu":1000,"memory":1073741824},"labels":{"project":"%s"},"spot":"prefer","attempts":3,"priority":1%s}`
	started := int64(now.Add(-2 * time.Hour))
	for _, step := range []struct {
		query string
		args  []any
	}{
		{counted + columns + `SELECT i, i, 'batch-' || (i / 1000), CASE i % 7 WHEN 0 THEN 'ada' ELSE 'bob' END, 'tile-' || i, -1, -1, 1000, ?2, 1, CASE i % 50 WHEN 0 THEN 'failed' ELSE 'succeeded' END, 0, i % 50 > 0, i % 50 = 0, 0, ?2 + i, '{}',
			printf('` + fmt.Sprintf(spec, "%d", "%d", "") + `', i, i % 20), 1 FROM n`, []any{single, started}},
		{columns + `VALUES (?1, ?1, 'array', 'ada', 'array', 0, ?2 - 1, 1000, ?3, 1, 'failed', 0, ?2 - ?2 / 50, ?2 / 50, 0, ?3, '{}', printf('` + fmt.Sprintf(spec, "x", "x", `,"array":{"first":0,"last":%d,"set":true}`) + `', ?2 - 1), 1)`,
			[]any{array, elements, started}},
		{counted + `INSERT INTO elements (job, idx, number, lost, retried, state, code, ended, reason) SELECT i, -1, 1, 0, 0, CASE i % 50 WHEN 0 THEN 'failed' ELSE 'succeeded' END, 0, ?2 + i, '{}' FROM n`, []any{single, started}},
		{counted + `INSERT INTO elements (job, idx, number, lost, retried, state, code, ended, reason) SELECT ?3, i - 1, 1, 0, 0, CASE i % 50 WHEN 0 THEN 'failed' ELSE 'succeeded' END, 0, ?2 + i, '{}' FROM n`, []any{elements, started, array}},
		{counted + `INSERT INTO attempts (job, idx, number, instance, state, started, ended, code, cost, max_rss, cpu, reason) SELECT i, -1, 1, 1 + i % ?3, 'succeeded', ?2 + i * 1000000, ?2 + (i + 1) * 1000000, 0, 1000, 1000000, 1000000, '{}' FROM n`, []any{single, started, instances}},
		{counted + `INSERT INTO attempts (job, idx, number, instance, state, started, ended, code, cost, max_rss, cpu, reason) SELECT ?4, i - 1, 1, 1 + i % ?3, 'succeeded', ?2 + i * 1000000, ?2 + (i + 1) * 1000000, 0, 1000, 1000000, 1000000, '{}' FROM n`, []any{elements, started, instances, array}},
		{counted + `INSERT INTO labels (label, value, job) SELECT 'project', CAST(i % 20 AS TEXT), i FROM n`, []any{single}},
		{`UPDATE counts SET succeeded = ?1 - ?1 / 50, failed = ?1 / 50`, []any{jobs}},
		{`UPDATE fleet SET last_job = ?1`, []any{array}},
	} {
		if _, err := db.ExecContext(t.Context(), step.query, step.args...); err != nil {
			t.Fatalf("%v\n%s", err, step.query)
		}
	}
	return array
}

// jar keeps the cookies of one site.
type jar struct{ kept []*http.Cookie }

// SetCookies keeps the cookies that were set last.
func (j *jar) SetCookies(_ *url.URL, cookies []*http.Cookie) { j.kept = cookies }

// Cookies returns these cookies.
func (j *jar) Cookies(*url.URL) []*http.Cookie { return j.kept }
