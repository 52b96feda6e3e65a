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

// fence stores the highest attempt number begun of each job, even after the attempts are forgotten. A controller whose
// records were lost reuses job numbers, so a job is identified by its records too. The fence guards against messages
// that arrive late, so it need keep only the newest jobs: at least fenceSize of them, in two generations of file and
// map. It drops the older generation when the younger is full.
//
// Lines are written without waiting for the disk: a restart of the VM ends every attempt and every message in transit.
type fence struct {
	file       *os.File
	young, old map[fenced]int
}

// fenced is a job and the records that number it.
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
	var err error
	f.file, err = openFenceFile()
	return f, err
}

func openFenceFile() (*os.File, error) {
	return os.OpenFile(fenceFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
}

// readFence adds the file's entries to the map. A line that a dying daemon or VM left unfinished never took effect.
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

// highest returns the highest attempt number begun of the job, 0 if none is known.
func (f *fence) highest(job fenced) int { return max(f.young[job], f.old[job]) }

// raise records that the attempt is about to begin.
func (f *fence) raise(store string, id drover.AttemptID) error {
	if len(f.young) >= fenceSize {
		if err := f.turnOver(); err != nil {
			return fmt.Errorf("rotating the fence: %w", err)
		}
	}
	// The newline comes first, so that a line cut short does not spoil the next.
	if _, err := f.file.WriteString("\n" + id.String() + " " + store + ";"); err != nil {
		return fmt.Errorf("writing the fence: %w", err)
	}
	key := fenced{store, id.Job}
	f.young[key] = max(f.young[key], id.Number)
	return nil
}

// turnOver begins a new generation. If it fails, it can be called again, although it may have renamed the file.
func (f *fence) turnOver() error {
	if err := os.Rename(fenceFile, fenceOld); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := openFenceFile()
	if err != nil {
		return err
	}
	f.file.Close() // nothing is left to write to it
	f.file, f.old, f.young = file, f.young, make(map[fenced]int)
	return nil
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

// writeEpoch stores the highest epoch. On a full disk it overwrites the earlier one, so all have the same length.
func writeEpoch(epoch int64) error {
	text := fmt.Appendf(nil, "%019d", epoch)
	full := atomicfile.WriteDurably(epochFile, text)
	if full == nil {
		return nil
	}
	f, err := os.OpenFile(epochFile, os.O_WRONLY, 0)
	if err != nil {
		return full
	}
	_, err = f.WriteAt(text, 0)
	return errors.Join(err, f.Sync(), f.Close())
}
