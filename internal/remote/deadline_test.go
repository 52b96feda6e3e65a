package remote

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/crypto/ssh"

	"drover"
	"drover/internal/wire"
)

// covers D3 F2
func TestEveryStepHasADeadline(t *testing.T) {
	times := Timeouts{
		Dial: 1 * time.Second, Handshake: 2 * time.Second, Verify: 3 * time.Second, Login: 4 * time.Second, Command: 5 * time.Second,
		Deploy: 6 * time.Second, BootProbe: 7 * time.Second, Hello: 8 * time.Second,
	}
	// hangAt makes the instance hang at commands that contain a word.
	hangAt := func(word string) func(*fakeInstance, *Target, *fakeRunner) {
		return func(i *fakeInstance, _ *Target, f *fakeRunner) {
			i.exec = func(command string, ch ssh.Channel) int {
				if strings.Contains(command, word) {
					<-i.over
					return 0
				}
				return f.exec(command, ch)
			}
		}
	}
	for name, c := range map[string]struct {
		set  func(*fakeInstance, *Target, *fakeRunner)
		kind drover.ErrorKind
		text string
		took time.Duration
	}{
		"dial": {func(_ *fakeInstance, t *Target, _ *fakeRunner) {
			t.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}
		}, drover.KindUnreachable, "connecting to instance.test:22: no answer within 1s", times.Dial},
		"banner": {func(_ *fakeInstance, t *Target, _ *fakeRunner) {
			t.Dial = func(context.Context, string, string) (net.Conn, error) {
				ours, _ := bufferedPipe()
				return ours, nil
			}
		}, drover.KindUnreachable, "SSH handshake: no answer within 2s", times.Handshake},
		"key exchange": {func(_ *fakeInstance, t *Target, _ *fakeRunner) {
			t.Dial = func(context.Context, string, string) (net.Conn, error) {
				ours, theirs := bufferedPipe()
				io.WriteString(theirs, "SSH-2.0-Tarpit\r\n")
				return ours, nil
			}
		}, drover.KindUnreachable, "SSH handshake: no answer within 2s", times.Handshake},
		"verifying the host key": {func(_ *fakeInstance, t *Target, _ *fakeRunner) {
			t.VerifyHostKey = func(ctx context.Context, _ ssh.PublicKey, _ []byte) error {
				<-ctx.Done()
				return ctx.Err()
			}
		}, drover.KindTransient, "verifying the host key", times.Verify},
		"login": {func(i *fakeInstance, _ *Target, _ *fakeRunner) {
			i.config.PublicKeyCallback = func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) {
				<-i.over
				return nil, io.EOF
			}
		}, drover.KindUnreachable, "logging in as admin: no answer within 4s", times.Login},
		"planted secret": {func(i *fakeInstance, t *Target, f *fakeRunner) {
			t.VerifyHostKey = func(context.Context, ssh.PublicKey, []byte) error { return drover.Errorf(drover.KindUnsupported, "") }
			t.Proof.Path = "/secret"
			hangAt("/secret")(i, t, f)
		}, drover.KindTransient, "reading back the installed secret: no answer within 5s", times.Command},
		"looking for the runner": {func(i *fakeInstance, t *Target, f *fakeRunner) {
			t.BootProbe = "probe"
			hangAt(spell(checkScript))(i, t, f)
		}, drover.KindTransient, "looking for the runner: no answer within 5s", times.Command},
		"deploying": {func(i *fakeInstance, t *Target, f *fakeRunner) {
			f.absent = true
			hangAt(spell(uploadScript))(i, t, f)
		}, drover.KindTransient, "deploying the runner: no answer within 6s", times.Deploy},
		"boot probe": {func(i *fakeInstance, t *Target, f *fakeRunner) {
			t.BootProbe = "probe"
			hangAt("probe'")(i, t, f)
		}, drover.KindTransient, "boot probe: no answer within 7s", times.BootProbe},
		"runner": {hangAt(spell(controlScript)), drover.KindTransient, "starting the runner: no answer within 8s", times.Hello},
		"hello": {func(i *fakeInstance, _ *Target, f *fakeRunner) {
			f.hello = func(wire.Hello) *wire.Hello {
				<-i.over
				return nil
			}
		}, drover.KindTransient, "starting the runner: no answer within 8s", times.Hello},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakeRunner{}
				i, target := fake(t, f)
				target.Timeouts = times
				c.set(i, &target, f)
				began := time.Now()
				_, err := Connect(t.Context(), target)
				if drover.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.text) {
					t.Errorf("%v (%v)", err, drover.KindOf(err))
				}
				if took := time.Since(began); took != c.took {
					t.Errorf("it failed after %v, want %v", took, c.took)
				}
			})
		})
	}
}

func TestConnectEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, target := fake(t, nil)
		i.exec = func(string, ssh.Channel) int {
			<-i.over
			return 0
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := Connect(ctx, target)
		if drover.KindOf(err) != drover.KindTransient || !strings.Contains(err.Error(), "starting the runner: context deadline exceeded") {
			t.Error(err)
		}
	})
}
