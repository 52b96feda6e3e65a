package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"
)

// plain runs a command as a number of jobs without Drover: each worker starts the next job as soon as its last one has
// ended. Jobs get the worker's name instead of the instance's.
func plain(workers, jobs int, command ...string) (elapsed time.Duration, err error) {
	began := time.Now()
	var left atomic.Int64
	left.Store(int64(jobs))
	failed := make([]error, workers)
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for failed[w] == nil && left.Add(-1) >= 0 {
				cmd := exec.Command(command[0], command[1:]...)
				cmd.Env = append(os.Environ(), fmt.Sprintf("DROVER_INSTANCE=plain-%d", w))
				failed[w] = cmd.Run()
			}
		})
	}
	all.Wait()
	return time.Since(began), errors.Join(failed...)
}
