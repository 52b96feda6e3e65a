package remote

import (
	"drover"
	"drover/internal/wire"
)

// Order tells the runner what it is to do beside attempts. It keeps to the last orders, also while nobody is connected.
func (c *Conn) Order(o wire.Orders) error { return c.send(wire.Message{Orders: &o}) }

// Notice is the cloud's notice that stood when the stream began, made harmless for people's eyes; nil if there was none.
func (c *Conn) Notice() *drover.Notice {
	if c.hello.Notice == nil || c.hello.Notice.Cause == "" {
		return nil
	}
	n := harmless(*c.hello.Notice)
	return &n
}

// Ailing is what the runner held to be wrong with the instance when the stream began; empty if nothing.
func (c *Conn) Ailing() string {
	if c.hello.Ailing == nil {
		return ""
	}
	return printable(c.hello.Ailing.Text)
}

// harmless is a notice whose text is safe to show.
func harmless(n wire.Notice) drover.Notice {
	return drover.Notice{Cause: printable(n.Cause), Deadline: max(0, n.Deadline)}
}
