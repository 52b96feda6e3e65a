package cli

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// ask is a program for jobs: it requests a path from DROVER_API, with the job's token or the given one, and prints the
// status and the body.
func ask(args []string) error {
	if len(args) == 0 {
		return errors.New("ask PATH [TOKEN]")
	}
	token := os.Getenv("DROVER_TOKEN")
	if len(args) > 1 {
		token = args[1]
	}
	r, err := http.NewRequest(http.MethodGet, os.Getenv("DROVER_API")+os.ExpandEnv(args[0]), nil)
	if err != nil {
		return err
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := (&http.Client{Timeout: 10 * time.Second}).Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	fmt.Printf("%d %s\n", answer.StatusCode, answer.Header.Get("Content-Type"))
	_, err = io.Copy(os.Stdout, answer.Body)
	return err
}

// witness is a program for jobs that records what happened to them. In a shared folder, it appends a line to the job's
// file when an attempt begins and when it ends, and another if a second attempt of the job is alive at the start. It
// writes an output if one is named.
func witness(args []string) error {
	if len(args) != 2 && len(args) != 3 {
		return errors.New("witness FOLDER DURATION [OUTPUT], or FOLDER SHORTEST-LONGEST [OUTPUT]")
	}
	d, err := chooseDuration(args[1])
	if err != nil {
		return err
	}
	f, err := testimonyIn(args[0])
	if err != nil {
		return err
	}
	defer f.Close()
	time.Sleep(d)
	if len(args) == 3 {
		if err := os.WriteFile(args[2], []byte(product(os.Getenv("DROVER_JOB_ID"), os.Getenv("DROVER_ATTEMPT"))), 0o600); err != nil {
			return err
		}
	}
	return testify(f, "end")
}

// testimonyIn records an attempt's start in its job's file in the folder, and returns the file. If another attempt of
// the job is alive, it records an overlap, and starts when the other has ended.
func testimonyIn(folder string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(folder, os.Getenv("DROVER_JOB_ID")), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	// The kernel releases the lock however the process ends.
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if err := errors.Join(testify(f, "overlap"), syscall.Flock(int(f.Fd()), syscall.LOCK_EX)); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	return f, testify(f, "begin")
}

// checkpoint is a slow witness: on SIGTERM, it saves its progress in the second folder and reports success. The next
// attempt continues from there, and requires the time of the interruption in its environment. If SIGTERM came while the
// program was ending, the attempt was interrupted though the work is done, and the next one finds nothing to do.
func checkpoint(args []string) error {
	if len(args) != 3 {
		return errors.New("checkpoint FOLDER SAVED DURATION")
	}
	whole, err := time.ParseDuration(args[2])
	if err != nil {
		return err
	}
	saved := filepath.Join(args[1], os.Getenv("DROVER_JOB_ID"))
	var done time.Duration
	if text, err := os.ReadFile(saved); err == nil {
		if done, err = time.ParseDuration(string(text)); err != nil {
			return err
		}
		if _, err := time.Parse(time.RFC3339, os.Getenv("DROVER_INTERRUPTED_AT")); err != nil {
			return fmt.Errorf("the attempt continues, but does not know when the last one was interrupted: %w", err)
		}
	}
	terminate := make(chan os.Signal, 1)
	signal.Notify(terminate, syscall.SIGTERM)
	f, err := testimonyIn(args[0])
	if err != nil {
		return err
	}
	defer f.Close()
	if told, err := os.ReadFile(f.Name()); err != nil || strings.Contains("\n"+string(told), "\nend ") {
		return err
	}
	began := time.Now()
	select {
	case <-time.After(whole - done):
		return testify(f, "end")
	case <-terminate:
	}
	if _, err := os.Stat(os.Getenv("DROVER_NOTICE_FILE")); err != nil {
		return fmt.Errorf("the attempt got SIGTERM, but no notice: %w", err)
	}
	return os.WriteFile(saved, []byte((done + time.Since(began)).String()), 0o600)
}

func chooseDuration(text string) (time.Duration, error) {
	shortest, longest, ranged := strings.Cut(text, "-")
	if !ranged {
		return time.ParseDuration(text)
	}
	from, err := time.ParseDuration(shortest)
	to, err2 := time.ParseDuration(longest)
	if err := errors.Join(err, err2); err != nil {
		return 0, err
	}
	return from + rand.N(to-from), nil
}

func testify(f *os.File, what string) error {
	_, err := fmt.Fprintf(f, "%s %s %s pid %d at %s\n", what, os.Getenv("DROVER_ATTEMPT"), os.Getenv("DROVER_INSTANCE"), os.Getpid(), time.Now().UTC().Format("15:04:05.000"))
	return err
}

// product returns the output of a witness: some kilobytes that are unique to this attempt of this job.
func product(job, attempt string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n", job, attempt)
	for i := range 100 {
		fmt.Fprintf(&b, "%x\n", sha256.Sum256(fmt.Appendf(nil, "%s %s %d", job, attempt, i)))
	}
	return b.String()
}
