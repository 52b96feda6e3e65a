package remote

import (
	"fmt"
	"io"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"

	"drover/internal/wire"
)

// fakeRunner is a runner without processes or files. Where a hook is nil, it does what a correct runner would do.
type fakeRunner struct {
	absent  bool // until something has been uploaded
	hello   func(wire.Hello) *wire.Hello
	message func(wire.Message, *wire.Conn)                 // each message but Hello and Ping
	ping    func(wire.Ping) *wire.Ping                     // nil result: no answer
	bulk    func(wire.Request, *wire.Conn, io.Writer) bool // reports whether the channel stays open

	mu       sync.Mutex
	uploaded int
	streams  []*wire.Conn // control streams; guarded by mu
}

// control returns the latest control stream.
func (f *fakeRunner) control() *wire.Conn {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.streams[len(f.streams)-1]
}

// exec recognizes the scripts by their text.
func (f *fakeRunner) exec(command string, ch ssh.Channel) int {
	is := func(script string) bool { return strings.Contains(command, spell(script)+"'") }
	switch {
	case is(controlScript):
		if f.verdict(ch) {
			f.serveControl(ch)
		}
	case is(checkScript):
		f.verdict(ch)
	case is(uploadScript):
		io.Copy(io.Discard, ch)
		f.mu.Lock()
		f.uploaded++
		f.absent = false
		f.mu.Unlock()
	case is(bulkScript):
		f.serveBulk(ch)
	default:
		fmt.Fprintf(ch.Stderr(), "sh: no such command\n")
		return 127
	}
	return 0
}

func (f *fakeRunner) verdict(ch ssh.Channel) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.absent {
		fmt.Fprintln(ch, absentWord)
	} else {
		fmt.Fprintln(ch, presentWord)
	}
	return !f.absent
}

func (f *fakeRunner) serveControl(ch ssh.Channel) {
	lines := wire.NewConn(ch, ch)
	var m wire.Message
	if lines.Read(&m) != nil || m.Hello == nil {
		return
	}
	answer := *m.Hello
	if f.hello != nil {
		theirs := f.hello(answer)
		if theirs == nil {
			return
		}
		answer = *theirs
	}
	f.mu.Lock()
	f.streams = append(f.streams, lines)
	f.mu.Unlock()
	if lines.Write(wire.Message{Hello: &answer}) != nil {
		return
	}
	for {
		var m wire.Message
		if lines.Read(&m) != nil {
			return
		}
		f.heed(m, lines)
	}
}

func (f *fakeRunner) heed(m wire.Message, lines *wire.Conn) {
	if m.Ping == nil {
		if f.message != nil {
			f.message(m, lines)
		}
		return
	}
	pong := m.Ping
	if f.ping != nil {
		pong = f.ping(*m.Ping)
	}
	if pong != nil {
		lines.Write(wire.Message{Pong: pong})
	}
}

func (f *fakeRunner) serveBulk(ch ssh.Channel) {
	fmt.Fprintln(ch, presentWord)
	lines := wire.NewConn(ch, ch)
	for {
		var r wire.Request
		if lines.Read(&r) != nil || !f.bulk(r, lines, ch) {
			return
		}
	}
}
