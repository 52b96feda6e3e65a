package control

import (
	"bytes"
	"encoding/json"
	"testing"

	"drover"
	"drover/internal/engine"
)

// covers K8
func TestADumpHasEveryPartOfTheController(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.cfg.Hooks = map[drover.Hook]string{drover.HookBroken: "/bin/true"}
	c, stop := f.begin()
	defer stop()
	f.submit(c, "sleep 60")
	f.until(c, "the job runs", func(*engine.Engine) bool { return must(c.stored(t.Context(), job(1)))(t).State == drover.JobRunning })
	var text bytes.Buffer
	if err := c.Dump(t.Context(), &text); err != nil {
		t.Fatal(err)
	}
	var d dump
	if err := json.Unmarshal(text.Bytes(), &d); err != nil {
		t.Fatal(err)
	}
	in := theOne(t, c)
	if len(d.Links) != 1 || d.Links[0].Instance != in.ID || d.Links[0].HostKey == "" || d.Links[0].Heard.IsZero() {
		t.Errorf("links %+v", d.Links)
	}
	if len(d.Clouds) != 1 || !d.Clouds[0].Listed || len(d.Clouds[0].List)+len(d.Clouds[0].Created) != 1 || d.Clouds[0].Offerings == 0 {
		t.Errorf("clouds %+v", d.Clouds)
	}
	if d.Hooks.Scripts[drover.HookBroken] != "/bin/true" || d.Store["jobs"] != 1 || d.Store["attempts"] != 1 || len(d.State.Jobs) != 1 {
		t.Errorf("hooks %+v, rows %v, jobs %v", d.Hooks, d.Store, d.State.Jobs)
	}
	id := drover.AttemptID{Job: job(1), Number: 1}
	if bytes.Contains(text.Bytes(), []byte(c.cfg.Key.AttemptToken(c.state.Nonce, id).Reveal())) {
		t.Error("the dump contains the attempt's token")
	}
}
