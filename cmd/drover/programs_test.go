package main

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// ask is a program that jobs run: it asks DROVER_API for a path, with the job's token or the one given, and prints status and answer.
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

// witness is a program that jobs run to prove what happened to them: in a folder that all share, it appends to a file of the job's own when
// an attempt begins and when it ends, and a line of its own if another attempt of the job is alive at that moment.
func witness(args []string) error {
	if len(args) != 2 {
		return errors.New("witness FOLDER DURATION, or FOLDER SHORTEST-LONGEST")
	}
	d, err := chooseDuration(args[1])
	if err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(args[0], os.Getenv("DROVER_JOB_ID")), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	// The kernel gives the lock back when the process dies, however it dies.
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return errors.Join(err, testify(f, "overlap"))
	}
	if err := testify(f, "begin"); err != nil {
		return err
	}
	time.Sleep(d)
	return testify(f, "end")
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
	_, err := fmt.Fprintf(f, "%s %s %s\n", what, os.Getenv("DROVER_ATTEMPT"), os.Getenv("DROVER_INSTANCE"))
	return err
}
