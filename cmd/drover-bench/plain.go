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

// plain runs a command so many times without Drover: each of so many workers starts the next as soon as its last has
// ended. Jobs find their worker's name where they otherwise find their instance's.
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
