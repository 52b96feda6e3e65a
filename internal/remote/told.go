package remote

import (
	"time"

	"drover"
	"drover/internal/wire"
)

// Order sends the runner its orders. The runner obeys the latest ones, even while no controller is connected.
func (c *Conn) Order(o wire.Orders) error { return c.send(wire.Message{Orders: &o}) }

// Notice returns the cloud's notice in force when the stream began, safe to show; nil if there was none.
func (c *Conn) Notice() *drover.Notice {
	if c.hello.Notice == nil || c.hello.Notice.Cause == "" {
		return nil
	}
	n := sanitizeNotice(*c.hello.Notice)
	return &n
}

// Ailing returns what the runner had found wrong with the instance when the stream began; empty if nothing.
func (c *Conn) Ailing() string {
	if c.hello.Ailing == nil {
		return ""
	}
	return printable(c.hello.Ailing.Text)
}

// maxExitText bounds the text about how an attempt ended. A correct runner sends no more.
const maxExitText = 1 << 10

// The most that an attempt can have used: no instance has more CPUs or memory, and no attempt runs for years on all of
// them.
const (
	mostCPUs   = 4096
	mostCPU    = 30 * 365 * 24 * time.Hour
	mostMemory = 64 * drover.TiB
)

// harmlessExit makes an exit's texts safe to show, its figures plausible and its output no longer than an exit's may
// be. It does not sanitize the output, which people see only if they request it.
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

// sanitizeNotice makes a notice's text safe to show.
func sanitizeNotice(n wire.Notice) drover.Notice {
	return drover.Notice{Cause: printable(n.Cause), Deadline: max(0, n.Deadline)}
}
