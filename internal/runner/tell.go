package runner

import (
	"bytes"
	"io"
	"os"
	"strings"

	"drover/internal/wire"
)

// teller sends each line of the daemon's log to the controller.
type teller struct{ d *daemon }

// Write sends one line. It never waits or fails: the log itself is in a file.
func (t teller) Write(line []byte) (int, error) {
	if s := t.d.hearer.Load(); s != nil {
		s.send(wire.Message{Log: &wire.Log{Line: cutLine(string(line))}})
	}
	return len(line), nil
}

func cutLine(line string) string {
	line = strings.TrimRight(line, "\n")
	return strings.ToValidUTF8(line[:min(len(line), wire.LogLine)], "")
}

// lastLines returns the last lines of a log, which is only for people. It returns none if the log cannot be read.
func lastLines(name string) []string {
	f, err := os.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	const most = wire.LogLines * wire.LogLine
	if info, err := f.Stat(); err == nil && info.Size() > most {
		if _, err := f.Seek(-most, io.SeekEnd); err != nil {
			return nil
		}
	}
	text, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return nil
	}
	var lines []string
	for line := range bytes.Lines(bytes.TrimSpace(text)) {
		lines = append(lines, cutLine(string(line)))
	}
	return lines[max(0, len(lines)-wire.LogLines):]
}
