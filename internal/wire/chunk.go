package wire

import (
	"encoding/binary"
	"fmt"
	"io"
)

// maxChunk bounds one chunk of a stream whose length is not known in advance.
const maxChunk = 64 << 10

// ChunkWriter sends a stream of unknown length in chunks, each preceded by its length in four big-endian bytes. Close
// sends the empty chunk that ends the stream.
type ChunkWriter struct{ W io.Writer }

// Write sends p, cut into chunks.
func (c ChunkWriter) Write(p []byte) (n int, err error) {
	for len(p) > 0 {
		part := p[:min(len(p), maxChunk)]
		frame := append(binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(part)), uint32(len(part))), part...)
		if _, err := c.W.Write(frame); err != nil {
			return n, err
		}
		n += len(part)
		p = p[len(part):]
	}
	return n, nil
}

// Close ends the stream; the channel stays open.
func (c ChunkWriter) Close() error {
	_, err := c.W.Write(make([]byte, 4))
	return err
}

// ChunkReader reads what a ChunkWriter sent; the empty chunk is its io.EOF. Drain it before using the channel again.
type ChunkReader struct {
	R    io.Reader
	left int
	done bool
}

// Read returns the next bytes of the stream.
func (c *ChunkReader) Read(p []byte) (int, error) {
	if c.done {
		return 0, io.EOF
	}
	if c.left == 0 {
		if err := c.next(); err != nil {
			return 0, err
		}
	}
	n, err := c.R.Read(p[:min(len(p), c.left)])
	c.left -= n
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func (c *ChunkReader) next() error {
	var head [4]byte
	if _, err := io.ReadFull(c.R, head[:]); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	c.left = int(binary.BigEndian.Uint32(head[:]))
	if c.left > maxChunk {
		return fmt.Errorf("a chunk of %d bytes is over the limit of %d", c.left, maxChunk)
	}
	if c.left == 0 {
		c.done = true
		return io.EOF
	}
	return nil
}
