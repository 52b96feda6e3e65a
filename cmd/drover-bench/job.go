package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// jobWord, as the first argument, makes this program a job that records when it began and ended.
const jobWord = "job"

// jobMain is that job: it sleeps and appends one line to its instance's notes. The first statement of main sets began,
// so it excludes the start of the process and of Go's runtime, about a millisecond, which is the same without Drover.
func jobMain(began time.Time, args []string) int {
	sleep, err := time.ParseDuration(args[1])
	if err != nil {
		return 2
	}
	time.Sleep(sleep)
	f, err := os.OpenFile(filepath.Join(args[0], os.Getenv("DROVER_INSTANCE")+notesSuffix), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return 1
	}
	if _, err := fmt.Fprintf(f, "%d %d\n", began.UnixNano(), time.Now().UnixNano()); err != nil {
		return 1
	}
	return 0
}

const notesSuffix = ".notes"

// span is when a job began and ended, in nanoseconds.
type span struct{ began, ended int64 }

// readNotes returns the notes of each instance's jobs, in order of time.
func readNotes(folder string) (perInstance [][]span, err error) {
	files, err := filepath.Glob(filepath.Join(folder, "*"+notesSuffix))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		spans, err := readSpans(file)
		if err != nil {
			return nil, err
		}
		perInstance = append(perInstance, spans)
	}
	return perInstance, nil
}

func readSpans(file string) (spans []span, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var s span
		if _, err := fmt.Sscan(lines.Text(), &s.began, &s.ended); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		spans = append(spans, s)
	}
	slices.SortFunc(spans, func(a, b span) int { return int(a.began - b.began) })
	return spans, lines.Err()
}

// gaps returns the times from one job's end to the next one's beginning on the same instance, shortest first.
func gaps(perInstance [][]span) (all []time.Duration) {
	for _, spans := range perInstance {
		for i := 1; i < len(spans); i++ {
			all = append(all, time.Duration(spans[i].began-spans[i-1].ended))
		}
	}
	slices.Sort(all)
	return all
}

// quantile returns the smallest value of a sorted list that at least the given percentage of the values do not exceed.
func quantile(sorted []time.Duration, percent int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max(0, (len(sorted)*percent+99)/100-1)]
}

func milliseconds(d time.Duration) string {
	return strconv.FormatFloat(d.Seconds()*1000, 'f', 1, 64)
}
