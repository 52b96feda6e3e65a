package remote

import (
	"time"

	"drover"
	"drover/internal/wire"
)

// Order tells the runner what it is to do beside attempts. It keeps to the last orders, also while nobody is connected.
func (c *Conn) Order(o wire.Orders) error { return c.send(wire.Message{Orders: &o}) }

// Notice is the cloud's notice that stood when the stream began, made harmless for people's eyes; nil if there was
// none.
func (c *Conn) Notice() *drover.Notice {
	if c.hello.Notice == nil || c.hello.Notice.Cause == "" {
		return nil
	}
	n := sanitizeNotice(*c.hello.Notice)
	return &n
}

// Ailing is what the runner held to be wrong with the instance when the stream began; empty if nothing.
func (c *Conn) Ailing() string {
	if c.hello.Ailing == nil {
		return ""
	}
	return printable(c.hello.Ailing.Text)
}

// maxExitText bounds what is said of how an attempt ended. A sound runner says less.
const maxExitText = 1 << 10

// What an attempt can have used: no instance has more CPUs or memory, and no attempt runs for years on all of them.
const (
	mostCPUs   = 4096
	mostCPU    = 30 * 365 * 24 * time.Hour
	mostMemory = 64 * drover.TiB
)

// harmlessExit is an exit whose words are safe to show and whose figures can be true, with no more of the output than
// belongs to it. The output itself is shown to nobody but who asks for it.
func harmlessExit(x drover.Exit) drover.Exit {
	x.Signal, x.Cause = printable(x.Signal), printable(x.Cause)
	x.Text = onOneLine(x.Text[:min(len(x.Text), maxExitText)])
	x.Started = max(0, x.Started)
	x.Ended = max(x.Started, x.Ended)
	x.CPU = min(max(0, x.CPU), mostCPU, mostCPUs*min(x.Ended.Sub(x.Started), mostCPU/mostCPUs))
	x.MaxRSS = min(max(0, x.MaxRSS), mostMemory)
	x.StdoutLen, x.StderrLen = max(0, x.StdoutLen), max(0, x.StderrLen)
	x.Stdout = x.Stdout[max(0, len(x.Stdout)-drover.TailBytes):]
	x.Stderr = x.Stderr[max(0, len(x.Stderr)-drover.TailBytes):]
	return x
}

// sanitizeNotice is a notice whose text is safe to show.
func sanitizeNotice(n wire.Notice) drover.Notice {
	return drover.Notice{Cause: printable(n.Cause), Deadline: max(0, n.Deadline)}
}
