package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/crypto/ssh"

	"drover"
	"drover/internal/wire"
)

// process is a command on the instance, on its own SSH channel. Close closes the channel.
type process struct {
	ssh.Channel               // its standard input and output
	stderr      tail          // the end of its standard error
	ended       chan struct{} // closed with the channel
	code        int           // -1 while unknown; written before ended is closed, like signal
	signal      string
}

// connection is an SSH connection.
type connection struct {
	ssh.Conn
	ended <-chan struct{} // closed when it has ended
}

// launch starts a command. If the instance cannot start it, that shows in how it ends. It does not wait beyond ctx for
// a hanging instance, nor beyond the connection's end: the library forgets a channel that is opened at that very moment,
// and waits for it for ever.
func launch(ctx context.Context, conn connection, command string) (*process, error) {
	type outcome struct {
		p   *process
		err error
	}
	opened := make(chan outcome, 1)
	go func() {
		p, err := start(conn, command)
		opened <- outcome{p, err}
	}()
	var why error
	select {
	case o := <-opened:
		return o.p, o.err
	case <-conn.ended:
		why = errors.New("opening a channel: the connection has ended")
	case <-ctx.Done():
		why = context.Cause(ctx)
	}
	go func() {
		if o := <-opened; o.err == nil {
			o.p.Close()
		}
	}()
	return nil, why
}

func start(conn ssh.Conn, command string) (*process, error) {
	channel, requests, err := conn.OpenChannel("session", nil)
	if err != nil {
		return nil, fmt.Errorf("opening a channel: %w", err)
	}
	p := &process{Channel: channel, ended: make(chan struct{}), code: -1}
	read := make(chan struct{})
	go func() {
		defer close(read)
		io.Copy(&p.stderr, channel.Stderr()) // ends with the channel, and a tail accepts everything
	}()
	go p.heed(requests, read)
	if _, err := channel.SendRequest("exec", false, ssh.Marshal(struct{ Command string }{command})); err != nil {
		channel.Close()
		return nil, fmt.Errorf("starting a command: %w", err)
	}
	return p, nil
}

// heed records how the command ended.
func (p *process) heed(requests <-chan *ssh.Request, read <-chan struct{}) {
	for r := range requests {
		switch r.Type {
		case "exit-status":
			var status struct{ Code uint32 }
			if ssh.Unmarshal(r.Payload, &status) == nil {
				p.code = int(status.Code)
			}
		case "exit-signal":
			var end struct {
				Signal     string
				Core       bool
				Text, Lang string
			}
			if ssh.Unmarshal(r.Payload, &end) == nil {
				p.signal = printable(end.Signal)
			}
		}
		// If the answer cannot be sent, a reader of the connection gets an error too.
		_ = r.Reply(false, nil)
	}
	<-read
	close(p.ended)
}

// wait waits for the command to end. It returns nil for exit code 0, else how the command ended and the end of its
// standard error.
func (p *process) wait() error {
	<-p.ended
	if p.code == 0 {
		return nil
	}
	return drover.Errorf(drover.KindTransient, "%s%s", p.end(), afterColon(p.stderr.lastLines()))
}

// vanished reports, once the channel has ended, whether it is unknown how the command ended.
func (p *process) vanished() bool { return p.code < 0 && p.signal == "" }

// end describes how the command ended, once it has.
func (p *process) end() string {
	switch {
	case p.signal != "":
		return "killed by SIG" + p.signal
	case p.vanished():
		return "the connection broke"
	default:
		return fmt.Sprintf("exited with %d", p.code)
	}
}

// run runs a command to its end and returns the end of its standard output. It has no timeout.
func run(conn connection, command string, stdin io.Reader) (*process, *tail, error) {
	p, err := launch(context.Background(), conn, command)
	if err != nil {
		return nil, nil, err
	}
	defer p.Close()
	if stdin != nil {
		// If the command does not read all of it, how it ends shows why.
		if _, err := io.Copy(p, stdin); err != nil && err != io.EOF {
			return nil, nil, err
		}
	}
	return p.finish()
}

// finish closes the command's input and waits for it to end.
func (p *process) finish() (*process, *tail, error) {
	// The error is ignored: the command may have ended.
	_ = p.CloseWrite()
	var out tail
	if _, err := io.Copy(&out, p); err != nil {
		return nil, nil, err
	}
	return p, &out, p.wait()
}

// runWithin is run without input. When the context ends it closes the command's channel and returns, even if the
// instance hangs.
func runWithin(ctx context.Context, conn connection, command string) (*process, *tail, error) {
	p, err := launch(ctx, conn, command)
	if err != nil {
		return nil, nil, err
	}
	type outcome struct {
		p   *process
		out *tail
		err error
	}
	ended := make(chan outcome, 1)
	go func() {
		defer p.Close()
		p, out, err := p.finish()
		ended <- outcome{p, out, err}
	}()
	select {
	case o := <-ended:
		return o.p, o.out, o.err
	case <-ctx.Done():
		// Even Close may have to wait for the instance.
		go p.Close()
		return nil, nil, context.Cause(ctx)
	}
}

// shell returns the command that runs a script with arguments under /bin/sh, whatever the user's login shell is. The
// login shell sees only words in single quotes, without any character that a shell might change even there: csh changes
// "!" and newlines, fish backslashes before quotes.
func shell(script string, args ...string) string { return shellAfter("", script, args...) }

// shellAfter is shell with a script that runs before the arguments are set.
func shellAfter(first, script string, args ...string) string {
	var b strings.Builder
	b.WriteString(first + "set --")
	for _, a := range args {
		b.WriteString(" " + quote(a))
	}
	b.WriteString("\n" + script)
	return `exec /bin/sh -c 'eval "$(printf %b "$1")"' drover '` + spell(b.String()) + "'"
}

// asRoot runs the whole script again as root. The script's own text is its first argument.
const asRoot = `exec sudo -n /bin/sh -c 'eval "$(printf %b "$1")"' drover "$1"` + "\n"

// runnerShell is shell for a script that uses the runner or its folder. The script runs as root if the runner must
// isolate attempts, or if it did before and its folder is therefore root's.
func (t Target) runnerShell(script string, args ...string) string {
	dir := quote(t.RunnerDir)
	if t.Apart {
		return shellAfter(`[ "$(id -u)" = 0 ] || `+asRoot+"export "+wire.ApartVariable+"=1\n", script, args...)
	}
	return shellAfter(`[ ! -d `+dir+` ] || [ -w `+dir+` ] || `+asRoot, script, args...)
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// spell writes s in characters that no shell changes in single quotes, and that printf %b turns back into s.
func spell(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte(" -_./", c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, `\0%03o`, c)
		}
	}
	return b.String()
}

// tailSize is how much of a command's output is kept.
const tailSize = 4 << 10

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

// Write accepts everything.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p[max(0, len(p)-tailSize):]...)
	t.text = append(t.text[:0], t.text[max(0, len(t.text)-tailSize):]...)
	return len(p), nil
}

func (t *tail) bytes() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return bytes.Clone(t.text)
}

// lastLines returns the last three lines of the text on one line, safe to show.
func (t *tail) lastLines() string {
	lines := strings.Split(strings.TrimSpace(string(t.bytes())), "\n")
	return printable(strings.Join(lines[max(0, len(lines)-3):], "; "))
}

// printable makes untrusted text safe to show: one line, of bounded length, without terminal control characters.
func printable(s string) string {
	s = onOneLine(s)
	const most = 500
	if runes := []rune(s); len(runes) > most {
		s = "…" + strings.TrimSpace(string(runes[len(runes)-most:]))
	}
	return s
}

// onOneLine is printable without the bound.
func onOneLine(s string) string {
	return strings.TrimSpace(strings.ReplaceAll(drover.Sanitize(s), string(utf8.RuneError), " "))
}

// afterColon returns a colon and s, or nothing if s is empty.
func afterColon(s string) string {
	if s == "" {
		return ""
	}
	return ": " + s
}
