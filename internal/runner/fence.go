package runner

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"drover"
	"drover/internal/atomicfile"
)

// fence remembers the highest attempt number begun of each job, also of attempts long forgotten. Records that were lost
// number their jobs anew, so it does so for each records there are. What it guards against is a message that comes
// late, so it keeps the newest fenceSize jobs at least, in two generations of file and map, and drops the older
// generation when the younger is full.
//
// Lines are written without waiting for the disk: a restart of the VM ends every attempt and every message under way.
type fence struct {
	file       *os.File
	young, old map[fenced]int
}

// fenced is a job, by the records that number it.
type fenced struct {
	store string
	job   drover.JobID
}

const (
	fenceSize = 1 << 16
	fenceFile = "fence"
	fenceOld  = "fence.old"
)

// openFence reads the folder's fence.
func openFence() (*fence, error) {
	f := &fence{young: make(map[fenced]int), old: make(map[fenced]int)}
	if err := errors.Join(readFence(fenceOld, f.old), readFence(fenceFile, f.young)); err != nil {
		return nil, fmt.Errorf("reading the fence: %w", err)
	}
	return f, f.open()
}

func (f *fence) open() (err error) {
	f.file, err = os.OpenFile(fenceFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	return err
}

// readFence adds what the file says to the map. A line that a dying daemon or VM left unfinished never took effect.
func readFence(path string, into map[fenced]int) error {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		line, whole := strings.CutSuffix(lines.Text(), ";")
		number, store, _ := strings.Cut(line, " ")
		if id, err := drover.ParseAttemptID(number); err == nil && whole {
			key := fenced{store, id.Job}
			into[key] = max(into[key], id.Number)
		}
	}
	return lines.Err()
}

// highest is the highest number begun of the job, 0 if none is known.
func (f *fence) highest(job fenced) int { return max(f.young[job], f.old[job]) }

// raise remembers that the attempt is about to be begun.
func (f *fence) raise(store string, id drover.AttemptID) error {
	if len(f.young) >= fenceSize {
		if err := f.turnOver(); err != nil {
			return fmt.Errorf("rotating the fence: %w", err)
		}
	}
	// The line end comes first, so that a line which was cut short spoils no later one.
	if _, err := f.file.WriteString("\n" + id.String() + " " + store + ";"); err != nil {
		return fmt.Errorf("writing the fence: %w", err)
	}
	key := fenced{store, id.Job}
	f.young[key] = max(f.young[key], id.Number)
	return nil
}

func (f *fence) turnOver() error {
	if err := errors.Join(f.file.Close(), os.Rename(fenceFile, fenceOld)); err != nil {
		return err
	}
	f.old, f.young = f.young, make(map[fenced]int)
	return f.open()
}

const epochFile = "epoch"

// readEpoch returns the highest epoch seen, 0 if none.
func readEpoch() (int64, error) {
	text, err := os.ReadFile(epochFile)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	epoch, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("reading the epoch: %w", err)
	}
	return epoch, nil
}

func writeEpoch(epoch int64) error {
	return atomicfile.WriteDurably(epochFile, strconv.AppendInt(nil, epoch, 10))
}
