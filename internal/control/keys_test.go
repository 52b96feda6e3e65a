package control

import (
	"crypto/ed25519"
	"crypto/rand"
	"slices"
	"testing"

	"golang.org/x/crypto/ssh"

	"drover"
	"drover/internal/engine"
)

func newLoginKey(t *testing.T) ssh.Signer {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return must(ssh.NewSignerFromSigner(private))(t)
}

// covers D25
func TestLoginKeysChangeWhileInstancesRun(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	old, recent := newLoginKey(t), newLoginKey(t)
	ready := func(n int) func(*engine.Engine) bool {
		return func(e *engine.Engine) bool {
			return len(slices.DeleteFunc(e.Instances(), func(in engine.Instance) bool { return !in.State.Ready() })) == n
		}
	}

	// An instance is created with the key configured at that time.
	f.cfg.Clouds[0].SSH.Keys = []ssh.Signer{old}
	c, stop := f.begin()
	f.submit(c, "true")
	f.until(c, "an instance is ready", ready(1))
	if err := stop(); err != nil {
		t.Fatal(err)
	}

	f.cfg.Clouds[0].SSH.Keys = []ssh.Signer{recent, old}
	c, stop = f.begin()
	f.until(c, "the instance is reached by its old key, and its job ends", func(e *engine.Engine) bool { return ready(1)(e) && f.allFinal(e) })

	// A new instance gets the first key.
	for _, in := range must(c.Instances(t.Context(), drover.InstanceFilter{}))(t).Items {
		if _, err := c.Instruct(t.Context(), in.Name, drover.VerbKill, ""); err != nil {
			t.Fatal(err)
		}
	}
	f.until(c, "the instance is gone", func(e *engine.Engine) bool { return len(e.Instances()) == 0 })
	s := f.cfg.Setup
	s.Clouds = slices.Clone(s.Clouds)
	s.Clouds[0].SSH.Keys = []ssh.Signer{recent}
	if err := c.Reconfigure(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	f.submit(c, "true")
	f.until(c, "a new instance is reached by the new key", func(e *engine.Engine) bool { return ready(1)(e) && f.allFinal(e) })
	if err := stop(); err != nil {
		t.Fatal(err)
	}
}
