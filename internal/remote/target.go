package remote

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net"
	"time"

	"golang.org/x/crypto/ssh"

	"drover"
)

// Target describes how to reach an instance and what to expect there.
type Target struct {
	Address string       // host:port
	User    string       // whom to log in as
	Signers []ssh.Signer // login keys, tried in order

	// Dial opens the network connection and obeys its context; nil means TCP.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// VerifyHostKey returns whether the key is the instance's. Nil: it is. KindUnsupported: it cannot be verified this
	// way, so Proof must verify it. KindHostKey, KindInvalid, KindNotFound, or an error without a kind: it is not, and
	// Connect returns KindHostKey. Any other kind: it cannot be verified now. A *RunFirst: Connect runs its command
	// after the login and calls VerifyHostKey again with the output, which is nil before. It must obey its context.
	// Connect calls it once, or twice after a *RunFirst; afterwards the key may not change.
	VerifyHostKey func(ctx context.Context, key ssh.PublicKey, output []byte) error
	Proof         Proof

	Fleet     string
	Instance  string // its name
	Epoch     int64
	RunnerDir string // the runner's folder, relative to the user's home; ".drover" if empty
	Runner    Runner
	Apart     bool   // attempts are isolated: the runner runs as root, by sudo if need be
	BootProbe string // a shell command that exits 0 once the instance is ready; empty if it was ready before
	Timeouts  Timeouts

	// Connect calls LoggedIn once the login has succeeded and the host key is verified, and Probed after the boot probe.
	LoggedIn func()
	Probed   func(passed bool)
}

// RunFirst is the error of a VerifyHostKey that needs the output of a command on the instance.
type RunFirst struct{ Command string }

func (r *RunFirst) Error() string {
	return "verifying the host key needs the output of a command on the instance"
}

// Proof is a secret that the instance's init command has planted in a file. Connect reads it back over the connection
// that it verifies, and never sends it. If Variable is set in the instance's environment, it names the file instead of
// Path. The zero Proof proves nothing.
type Proof struct {
	Path     string
	Variable string // of the instance's environment; empty for none
	Secret   drover.Secret
}

// Runner is the program to put on the instance, built for its architecture.
type Runner struct {
	Hash string // SHA-256 of its content, in hex
	Sum  string // what the command cksum prints for its content
	Size int64
	Open func() (io.ReadCloser, error)
}

// NewRunner reads the program once, to compute its checksums and size.
func NewRunner(open func() (io.ReadCloser, error)) (Runner, error) {
	content, err := open()
	if err != nil {
		return Runner{}, err
	}
	defer content.Close()
	hash, sum := sha256.New(), newCksum()
	size, err := io.Copy(io.MultiWriter(hash, sum), content)
	if err != nil {
		return Runner{}, err
	}
	return Runner{Hash: hex.EncodeToString(hash.Sum(nil)), Sum: sum.String(), Size: size, Open: open}, nil
}

// name returns the name of the runner's file. It begins with the program's name, by which the program recognizes its
// role.
func (r Runner) name() string { return "drover-runner-" + r.Hash[:min(16, len(r.Hash))] }

// Timeouts bound every wait. A zero field means the default given.
type Timeouts struct {
	Dial      time.Duration // until the connection is open; 10 s
	Handshake time.Duration // until the host key is shown; 10 s
	Verify    time.Duration // for VerifyHostKey; 30 s
	Login     time.Duration // until the login is accepted; 10 s
	Command   time.Duration // for a small command or the opening of a channel; 20 s
	Deploy    time.Duration // for sending the runner; 3 min
	BootProbe time.Duration // 30 s
	Hello     time.Duration // until the runner has sent Hello, including its start; 30 s

	ProbeInterval time.Duration // between two pings; 10 s
	Probe         time.Duration // until a ping is answered, and for any one message to be sent; 10 s
	Stall         time.Duration // without progress in a bulk transfer; 1 min
	Idle          time.Duration // until an unused bulk channel is closed; 5 s
}

func (t Timeouts) withDefaults() Timeouts {
	return Timeouts{
		Dial:          cmp.Or(t.Dial, 10*time.Second),
		Handshake:     cmp.Or(t.Handshake, 10*time.Second),
		Verify:        cmp.Or(t.Verify, 30*time.Second),
		Login:         cmp.Or(t.Login, 10*time.Second),
		Command:       cmp.Or(t.Command, 20*time.Second),
		Deploy:        cmp.Or(t.Deploy, 3*time.Minute),
		BootProbe:     cmp.Or(t.BootProbe, 30*time.Second),
		Hello:         cmp.Or(t.Hello, 30*time.Second),
		ProbeInterval: cmp.Or(t.ProbeInterval, 10*time.Second),
		Probe:         cmp.Or(t.Probe, 10*time.Second),
		Stall:         cmp.Or(t.Stall, time.Minute),
		Idle:          cmp.Or(t.Idle, 5*time.Second),
	}
}

func (t Target) withDefaults() Target {
	t.RunnerDir = cmp.Or(t.RunnerDir, ".drover")
	t.Timeouts = t.Timeouts.withDefaults()
	if t.Dial == nil {
		t.Dial = new(net.Dialer).DialContext
	}
	return t
}
