package cli

import (
	"io"
	"os"

	"golang.org/x/sys/unix"

	"drover"
)

// inputWait is how long to wait for input from a pipe. Input that was written before the command starts is available at
// once.
const inputWait = 100 // milliseconds

// refuseInput rejects a command with piped input, since its job would not get it.
func refuseInput(stdin *os.File) error {
	if !hasInput(stdin) {
		return nil
	}
	return drover.Errorf(drover.KindInvalid, "standard input is not empty, but jobs cannot read it").
		WithHint(`write it to a file: --input FILE -- sh -c "CMD < FILE"; or end the command line with < /dev/null`)
}

// hasInput reports whether a pipe or a file has something to read. For a terminal and a silent pipe it returns false.
func hasInput(stdin *os.File) bool {
	info, err := stdin.Stat()
	switch {
	case err != nil:
		return false
	case info.Mode().IsRegular():
		at, err := stdin.Seek(0, io.SeekCurrent)
		return err == nil && at < info.Size()
	case info.Mode()&os.ModeNamedPipe == 0:
		return false
	}
	poll := []unix.PollFd{{Fd: int32(stdin.Fd()), Events: unix.POLLIN}}
	n, err := unix.Poll(poll, inputWait)
	return err == nil && n == 1 && poll[0].Revents&unix.POLLIN != 0
}
