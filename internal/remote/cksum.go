package remote

import "fmt"

// cksum computes what the command cksum prints for the bytes written to it: POSIX's CRC, which hash/crc32 lacks, and
// the size.
type cksum struct {
	crc   uint32
	size  int64
	table [256]uint32 // what each byte does to the CRC
}

func newCksum() *cksum {
	c := &cksum{}
	for i := range c.table {
		crc := uint32(i) << 24
		for range 8 {
			crc = crc<<1 ^ crc>>31*0x04c11db7
		}
		c.table[i] = crc
	}
	return c
}

// Write never fails.
func (c *cksum) Write(p []byte) (int, error) {
	for _, b := range p {
		c.crc = c.next(c.crc, b)
	}
	c.size += int64(len(p))
	return len(p), nil
}

func (c *cksum) next(crc uint32, b byte) uint32 { return crc<<8 ^ c.table[byte(crc>>24)^b] }

// String returns what the command prints. The CRC includes the size after the contents, lowest byte first.
func (c *cksum) String() string {
	crc := c.crc
	for n := c.size; n > 0; n >>= 8 {
		crc = c.next(crc, byte(n))
	}
	return fmt.Sprint(^crc, " ", c.size)
}
