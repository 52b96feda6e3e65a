package remote

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"drover"
	"drover/internal/wire"
)

// fake returns an instance with a fake runner, and its Target.
func fake(t testing.TB, f *fakeRunner) (*fakeInstance, Target) {
	i := newFakeInstance(t, "i-1")
	i.exec = f.exec
	return i, target(i, "i-1")
}

// refused connects and checks that it fails as wanted.
func refused(t *testing.T, target Target, kind drover.ErrorKind, text string) {
	t.Helper()
	c, err := Connect(testContext(t), target)
	if err == nil {
		c.Close()
		t.Fatal("connected")
	}
	var e *drover.Error
	if !errors.As(err, &e) || e.Kind != kind || !strings.Contains(err.Error(), text) {
		t.Errorf("%v (%v), want %v with %q", err, drover.KindOf(err), kind, text)
	}
}

// covers D6
func TestHostKeys(t *testing.T) {
	saying := func(err error) func(context.Context, ssh.PublicKey, []byte) error {
		return func(context.Context, ssh.PublicKey, []byte) error { return err }
	}
	nothingSent := func(t *testing.T, i *fakeInstance) {
		t.Helper()
		i.mu.Lock()
		defer i.mu.Unlock()
		if i.logins != 0 || len(i.execs) != 0 {
			t.Errorf("%d logins, commands %q", i.logins, i.execs)
		}
	}
	for what, said := range map[string]error{
		"a key of another instance":     drover.Errorf(drover.KindHostKey, "it was SHA256:x"),
		"a key refused without a kind":  errors.New("no"),
		"a key that cannot be verified": drover.Errorf(drover.KindUnsupported, "no way to tell"),
	} {
		t.Run(what+" is refused before any login", func(t *testing.T) {
			i, target := fake(t, &fakeRunner{})
			target.VerifyHostKey = saying(said)
			refused(t, target, drover.KindHostKey, "the host key SHA256:")
			nothingSent(t, i)
		})
	}
	for what, said := range map[string]error{
		"a cloud that cannot verify it yet":    drover.Errorf(drover.KindTransient, "no console yet"),
		"a cloud that rejects our credentials": drover.Errorf(drover.KindAuthentication, "token expired"),
		"a context that ends":                  context.DeadlineExceeded,
	} {
		t.Run(what+" is not reported as an attack", func(t *testing.T) {
			i, target := fake(t, &fakeRunner{})
			target.VerifyHostKey = saying(said)
			refused(t, target, drover.KindTransient, "verif")
			nothingSent(t, i)
		})
	}
	t.Run("the changed key of a known instance is refused", func(t *testing.T) {
		_, target := fake(t, &fakeRunner{})
		impostor := newFakeInstance(t, "i-2")
		target.Dial = impostor.dial
		refused(t, target, drover.KindHostKey, "does not belong to this instance")
		nothingSent(t, impostor)
	})
	t.Run("a key that changes at rekeying ends the connection as an attack", func(t *testing.T) {
		s := &session{target: Target{VerifyHostKey: saying(nil)}.withDefaults(), ctx: t.Context()}
		raw, _ := bufferedPipe()
		s.deadlines = newDeadlines(s.ctx, raw, step{limit: 1 << 40})
		defer s.deadlines.end()
		key := func(name string) ssh.PublicKey {
			h, err := testKey().HostKey(name)
			if err != nil {
				t.Fatal(err)
			}
			k, err := ssh.ParsePublicKey(h.Public)
			if err != nil {
				t.Fatal(err)
			}
			return k
		}
		for range 2 {
			if err := s.checkHostKey("", nil, key("i-1")); err != nil {
				t.Fatal(err)
			}
		}
		err := s.checkHostKey("", nil, key("i-2"))
		if drover.KindOf(err) != drover.KindHostKey {
			t.Error(err)
		}
		if got := (&Conn{session: s}).lost(io.EOF); got != err {
			t.Errorf("Run returns %v", got)
		}
	})
}

// covers D6
func TestPlantedSecret(t *testing.T) {
	connect := func(t *testing.T, planted string, code int) Target {
		f := &fakeRunner{}
		i := newFakeInstance(t, "i-1")
		i.exec = func(command string, ch ssh.Channel) int {
			if strings.Contains(command, "/secret") {
				io.WriteString(ch, "Welcome\n"+presentWord+"\n"+planted)
				return code
			}
			return f.exec(command, ch)
		}
		target := target(i, "i-1")
		target.VerifyHostKey = func(context.Context, ssh.PublicKey, []byte) error { return drover.Errorf(drover.KindUnsupported, "") }
		target.Proof = Proof{"/secret", "", drover.NewSecret("s3cret")}
		return target
	}
	t.Run("the right secret proves the host key", func(t *testing.T) {
		c, err := Connect(testContext(t), connect(t, "s3cret\n", 0))
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
	})
	t.Run("a wrong secret is refused", func(t *testing.T) {
		refused(t, connect(t, "other\n", 0), drover.KindHostKey, "not verified")
	})
	t.Run("an empty secret proves nothing", func(t *testing.T) {
		target := connect(t, "", 0)
		target.Proof.Secret = drover.Secret{}
		refused(t, target, drover.KindHostKey, "not verified")
	})
	t.Run("a secret that is not installed yet is a transient error", func(t *testing.T) {
		refused(t, connect(t, "", 1), drover.KindTransient, "is not installed yet")
	})
}

// covers L26
func TestLogin(t *testing.T) {
	t.Run("a rejected key is an authentication error at once", func(t *testing.T) {
		_, target := fake(t, &fakeRunner{})
		target.Signers = []ssh.Signer{FleetKey{drover.NewSecret("another")}.LoginKey()}
		refused(t, target, drover.KindAuthentication, "rejects every login key for user admin (1 tried)")
	})
	t.Run("the one accepted key among several is found", func(t *testing.T) {
		_, target := fake(t, &fakeRunner{})
		target.Signers = []ssh.Signer{FleetKey{drover.NewSecret("another")}.LoginKey(), testKey().LoginKey()}
		c, err := Connect(testContext(t), target)
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
	})
	t.Run("an SSH server with only old algorithms is refused, and the error names them", func(t *testing.T) {
		i, target := fake(t, &fakeRunner{})
		i.config.KeyExchanges = []string{ssh.InsecureKeyExchangeDH14SHA1}
		refused(t, target, drover.KindUnsupported, "diffie-hellman-group14-sha1")
	})
	t.Run("a connection lost during the login is not reported as a rejected key", func(t *testing.T) {
		i, target := fake(t, &fakeRunner{})
		var raw net.Conn
		target.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			var err error
			raw, err = i.dial(ctx, network, address)
			return raw, err
		}
		i.config.PublicKeyCallback = func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) {
			raw.Close()
			return nil, io.EOF
		}
		refused(t, target, drover.KindUnreachable, "logging in as admin")
	})
	t.Run("a dial that fails is the network's fault", func(t *testing.T) {
		_, target := fake(t, &fakeRunner{})
		target.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no route to host") }
		refused(t, target, drover.KindUnreachable, "connecting to instance.test:22: no route to host")
	})
}

func TestHello(t *testing.T) {
	answering := func(change func(*wire.Hello)) *fakeRunner {
		return &fakeRunner{hello: func(h wire.Hello) *wire.Hello { change(&h); return &h }}
	}
	t.Run("each side learns who the other is", func(t *testing.T) {
		var heard wire.Hello
		_, target := fake(t, answering(func(h *wire.Hello) {
			heard = *h
			h.Attempts = []wire.Attempt{{ID: attempt(7)}}
		}))
		target.Epoch = 42
		c, err := Connect(testContext(t), target)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if heard.Epoch != 42 || heard.Fleet != "test" || heard.Instance != "i-1" || heard.Version != wire.Version {
			t.Errorf("the runner got %+v", heard)
		}
		if got := c.Hello(); len(got.Attempts) != 1 || got.Attempts[0].ID != attempt(7) {
			t.Errorf("we got %+v", got)
		}
		if want, _ := testKey().HostKey("i-1"); c.Fingerprint() != want.Fingerprint {
			t.Errorf("fingerprint %s", c.Fingerprint())
		}
	})
	for what, c := range map[string]struct {
		change func(*wire.Hello)
		kind   drover.ErrorKind
		text   string
	}{
		"another version of the protocol": {func(h *wire.Hello) { h.Version++ }, drover.KindUnsupported, "version 2 of the protocol, not 1"},
		"a refusal of an old epoch":       {func(h *wire.Hello) { h.Error = "epoch 1 is\x1b[2J over" }, drover.KindConflict, "refuses this controller: epoch 1 is [2J over"},
		"another instance's runner":       {func(h *wire.Hello) { h.Instance = "i-9" }, drover.KindConflict, `instance "i-9" of fleet "test"`},
		"another fleet's runner":          {func(h *wire.Hello) { h.Fleet = "prod" }, drover.KindConflict, `fleet "prod"`},
	} {
		t.Run(what+" ends the connection", func(t *testing.T) {
			_, target := fake(t, answering(c.change))
			refused(t, target, c.kind, c.text)
		})
	}
	t.Run("the error has the last words of a runner that dies", func(t *testing.T) {
		i, target := fake(t, nil)
		i.exec = func(_ string, ch ssh.Channel) int {
			io.WriteString(ch, presentWord+"\n")
			io.WriteString(ch.Stderr(), "drover-runner: no space left on device\n")
			return 1
		}
		refused(t, target, drover.KindTransient, "starting the runner: exited with 1: drover-runner: no space left on device")
	})
	t.Run("the login shell's noise is skipped, up to a limit", func(t *testing.T) {
		f := &fakeRunner{}
		i, target := fake(t, nil)
		lines := 10
		i.exec = func(command string, ch ssh.Channel) int {
			io.WriteString(ch, strings.Repeat("Welcome! "+strings.Repeat("x", 5000)+"\n", lines))
			return f.exec(command, ch)
		}
		c, err := Connect(testContext(t), target)
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		lines = 100
		refused(t, target, drover.KindTransient, "prints too much")
	})
	t.Run("if the runner is present, one command does it all", func(t *testing.T) {
		i, target := fake(t, &fakeRunner{})
		c, err := Connect(testContext(t), target)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if n := len(i.commands()); n != 1 {
			t.Errorf("%d commands", n)
		}
	})
}

// covers D6
func TestAHostKeyProvedByACommandsOutput(t *testing.T) {
	connect := func(t *testing.T, code int, verify func(output []byte) error) Target {
		f := &fakeRunner{}
		i := newFakeInstance(t, "i-1")
		i.exec = func(command string, ch ssh.Channel) int {
			if strings.Contains(command, "who-are-you") {
				io.WriteString(ch, "Welcome\n"+presentWord+"\nI am i-1\n")
				return code
			}
			return f.exec(command, ch)
		}
		target := target(i, "i-1")
		target.VerifyHostKey = func(_ context.Context, _ ssh.PublicKey, output []byte) error {
			if output == nil {
				return &RunFirst{"who-are-you"}
			}
			return verify(output)
		}
		return target
	}
	t.Run("is accepted when the output is the instance's", func(t *testing.T) {
		c, err := Connect(testContext(t), connect(t, 0, func(output []byte) error {
			if string(output) != "I am i-1\n" {
				return drover.Errorf(drover.KindHostKey, "it says %q", output)
			}
			return nil
		}))
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
	})
	for what, said := range map[string]error{
		"the output is another instance's":       drover.Errorf(drover.KindHostKey, "no"),
		"the output proves nothing":              drover.Errorf(drover.KindUnsupported, "cannot tell"),
		"VerifyHostKey asks for a command again": &RunFirst{"who-are-you"},
	} {
		t.Run("is refused when "+what, func(t *testing.T) {
			refused(t, connect(t, 0, func([]byte) error { return said }), drover.KindHostKey, "the host key SHA256:")
		})
	}
	t.Run("is a transient error when the command fails", func(t *testing.T) {
		refused(t, connect(t, 1, func([]byte) error { return nil }), drover.KindTransient, "failed")
	})
}
