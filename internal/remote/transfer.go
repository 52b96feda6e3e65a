package remote

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"drover"
	"drover/internal/wire"
)

// FetchLog reads one of an attempt's streams from offset on: at most limit bytes of those that there are now. It returns
// KindNotFound if there is no such stream. It occupies a bulk channel until the reader has been read to its end or ctx
// ends.
func (c *Conn) FetchLog(ctx context.Context, id drover.AttemptID, stream string, offset, limit int64) (io.Reader, error) {
	l, reply, err := c.transfers.ask(ctx, wire.Request{Op: wire.GetLog, ID: id, Stream: stream, Offset: offset, Size: limit})
	if err != nil {
		return nil, err
	}
	if reply.Size < 0 {
		l.end(false)
		return nil, drover.Errorf(drover.KindTransient, "the runner reports an invalid log size of %d bytes", reply.Size)
	}
	r := &sizedReader{lease: l, left: min(limit, reply.Size), whole: limit >= reply.Size}
	r.endIfRead()
	return r, nil
}

// sizedReader reads a known number of bytes from a bulk channel and then gives the channel back.
type sizedReader struct {
	lease *lease
	left  int64
	whole bool // nothing follows these bytes on the channel
}

// Read returns io.EOF after the last byte, and never before it.
func (r *sizedReader) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	n, err := r.lease.Read(p[:min(int64(len(p)), r.left)])
	r.left -= int64(n)
	r.endIfRead()
	if err != nil {
		err = r.lease.cause(err)
		r.lease.end(false)
	}
	return n, err
}

func (r *sizedReader) endIfRead() {
	if r.left == 0 {
		r.lease.end(r.whole)
	}
}

// maxLeftOver bounds the padding that may follow the end of a tar stream.
const maxLeftOver = 1 << 20

// Absent is what an attempt's outputs lack: what matched and was left out on purpose, and the indexes of the patterns
// that matched nothing.
type Absent struct {
	LeftOut   []string
	Unmatched []int
}

// maxLeftOut bounds how many left-out names a runner may report.
const maxLeftOut = 50

// Outputs passes an attempt's outputs to take as a tar stream, which take must read to its end. If take succeeds but
// the outputs are incomplete, the error is KindInvalid.
func (c *Conn) Outputs(ctx context.Context, id drover.AttemptID, take func(tar io.Reader) error) (absent Absent, err error) {
	l, _, err := c.transfers.ask(ctx, wire.Request{Op: wire.GetOutputs, ID: id})
	if err != nil {
		return absent, err
	}
	defer func() { l.end(err == nil) }()
	chunks := &wire.ChunkReader{R: l}
	if err := take(causeReader{chunks, l}); err != nil {
		return absent, err
	}
	left, err := io.Copy(io.Discard, io.LimitReader(chunks, maxLeftOver+1))
	if err == nil && left > maxLeftOver {
		err = errors.New("the runner sent too much data after the tar stream")
	}
	if err != nil {
		return absent, l.cause(err)
	}
	reply, err := l.reply()
	if said, ok := errors.AsType[*drover.Error](err); ok {
		return absent, drover.Errorf(drover.KindInvalid, "the outputs are incomplete: %v", said)
	}
	if err != nil {
		return absent, l.cause(err)
	}
	for _, text := range reply.LeftOut[:min(len(reply.LeftOut), maxLeftOut)] {
		absent.LeftOut = append(absent.LeftOut, printable(text))
	}
	slices.Sort(reply.Unmatched)
	absent.Unmatched = slices.Compact(reply.Unmatched) // a runner may send anything, any number of times
	return absent, nil
}

// causeReader replaces a read error by its cause.
type causeReader struct {
	io.Reader
	lease *lease
}

func (r causeReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && err != io.EOF {
		err = r.lease.cause(err)
	}
	return n, err
}

// OpenAPI takes a job's connection to DROVER_API, announced by Handler.API. It fails if no channel is free before the
// instance gives the connection up. The connection lasts until either side ends it, and must be closed.
func (c *Conn) OpenAPI(conn int64) (io.ReadWriteCloser, error) {
	ctx, cancel := context.WithCancelCause(context.Background())
	impatience := time.AfterFunc(wire.APIPatience, func() { cancel(errors.New("the instance is no longer waiting")) })
	l, _, err := c.apis.ask(ctx, wire.Request{Op: wire.OpenAPI, Conn: conn})
	if !impatience.Stop() && err == nil {
		err = transient("accepting a job's connection", context.Cause(ctx))
	}
	if err != nil {
		return nil, err
	}
	l.stall.Store(0)
	return apiConn{l}, nil
}

// apiConn is a job's connection.
type apiConn struct{ *lease }

func (a apiConn) Close() error {
	a.end(false)
	return nil
}
