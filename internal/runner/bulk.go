package runner

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"drover"
	"drover/internal/wire"
)

// bulk is one bulk channel.
type bulk struct {
	d     *daemon
	conn  *net.UnixConn
	lines *wire.Conn
}

// errLast ends a channel after its last operation.
var errLast = errors.New("the channel's last operation is done")

// serveBulk serves a channel's requests in turn. After an error it hangs up: a Reply has already sent the controller
// what it needs.
func (d *daemon) serveBulk(conn *net.UnixConn, lines *wire.Conn) {
	b := bulk{d, conn, lines}
	for {
		var r wire.Request
		if err := lines.Read(&r); err != nil {
			return
		}
		if err := b.serve(r); err != nil {
			return
		}
	}
}

func (b bulk) serve(r wire.Request) error {
	switch r.Op {
	case wire.PutBlob:
		return b.putBlob(r)
	case wire.GetLog:
		return b.getLog(r)
	case wire.GetOutputs:
		return b.getOutputs(r)
	case wire.OpenAPI:
		return b.openAPI(r)
	}
	return b.refuse(fmt.Errorf("unknown operation %.40q", r.Op))
}

// refuse answers with an error; the channel stays open.
func (b bulk) refuse(err error) error { return b.lines.Write(wire.Reply{Error: limit(err.Error())}) }

// putBlob hangs up if it has not read all the bytes that follow, so that they are not read as requests.
func (b bulk) putBlob(r wire.Request) error {
	if err := b.d.blobs.admit(r.Hash, r.Size); err != nil {
		return errors.Join(err, b.refuse(err))
	}
	if err := b.lines.Write(wire.Reply{}); err != nil {
		return err
	}
	whole, err := b.d.blobs.put(b.lines.Bytes(), r.Hash, r.Size)
	if err == nil {
		return b.lines.Write(wire.Reply{Size: r.Size})
	}
	if said := b.refuse(err); !whole || said != nil {
		return errors.Join(err, said)
	}
	return nil
}

// find returns an attempt that the daemon has.
func (d *daemon) find(id drover.AttemptID) (*attempt, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if a := d.attempts[id]; a != nil {
		return a, nil
	}
	return nil, fmt.Errorf("there is no attempt %v here", id)
}

// openLog opens the log that a request names.
func (b bulk) openLog(r wire.Request) (*os.File, error) {
	if r.Stream != "stdout" && r.Stream != "stderr" {
		return nil, fmt.Errorf("there is no stream %.40q", r.Stream)
	}
	a, err := b.d.find(r.ID)
	if err != nil {
		return nil, err
	}
	return os.Open(a.folder.path(r.Stream))
}

func (b bulk) getLog(r wire.Request) error {
	f, err := b.openLog(r)
	if err != nil {
		return b.refuse(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return b.refuse(err)
	}
	from := max(0, min(r.Offset, info.Size()))
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return b.refuse(err)
	}
	size := info.Size() - from
	if r.Size > 0 {
		size = min(size, r.Size)
	}
	if err := b.lines.Write(wire.Reply{Size: size}); err != nil {
		return err
	}
	_, err = io.CopyN(b.conn, f, size)
	return err
}

// openAPI joins the channel to a job's connection until either side ends.
func (b bulk) openAPI(r wire.Request) error {
	job, err := b.d.api.take(r.Conn)
	if err != nil {
		return errors.Join(errLast, b.refuse(err))
	}
	defer b.d.api.release(job)
	if err := b.lines.Write(wire.Reply{}); err != nil {
		return err
	}
	done := make(chan error, 2)
	carry := func(to io.Writer, from io.Reader) {
		_, err := io.Copy(to, from)
		done <- err
	}
	go carry(job, b.lines.Bytes())
	go carry(b.conn, job)
	return errors.Join(errLast, <-done)
}
