package cli

import (
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"drover"
)

// cutting starts a proxy that cuts each connection after a number of response bytes, and counts the connections.
func cutting(t *testing.T, to string, after int64) (address string, connections *atomic.Int64) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	connections = new(atomic.Int64)
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			connections.Add(1)
			go func() {
				defer near.Close()
				far, err := net.Dial("tcp", to)
				if err != nil {
					return
				}
				defer far.Close()
				go io.Copy(far, near)
				io.CopyN(near, far, after)
			}()
		}
	}()
	return listener.Addr().String(), connections
}

func TestStreamsSurviveBrokenConnections(t *testing.T) {
	long := strings.Repeat("all work and no play\n", 10_000)
	job := aJob(1, "a", drover.JobSucceeded)
	job.Attempts = []drover.Attempt{{Number: 1}}
	f := &fakeController{
		jobs: []drover.Job{job}, logs: map[drover.Stream][]string{drover.Stdout: {long}},
		outputs: map[drover.JobID]map[string]string{job.ID: {"big": long}},
	}
	f.serve(t)
	there, err := url.Parse(os.Getenv("DROVER_SERVER"))
	if err != nil {
		t.Fatal(err)
	}
	const piece = 40_000
	address, connections := cutting(t, there.Host, piece)
	t.Setenv("DROVER_SERVER", "http://"+address)
	// Each connection carries one piece minus its headers: a client that started over each time would never finish.
	fewest, most := int64(len(long)/piece), int64(len(long)/piece+5)
	for _, args := range [][]string{{"logs", "1"}, {"logs", "-f", "1"}} {
		t.Run(strings.Join(args, " ")+" resumes where it was cut", func(t *testing.T) {
			before := connections.Load()
			if r := droverCommand(t, args...); r.code != 0 || r.out != long {
				t.Errorf("exit code %d, %d bytes of %d: %s", r.code, len(r.out), len(long), r.err)
			}
			if n := connections.Load() - before; n < fewest || n > most {
				t.Errorf("it took %d connections", n)
			}
		})
	}
	t.Run("outputs resume where they were cut, and are complete", func(t *testing.T) {
		before, to := connections.Load(), t.TempDir()
		r := droverCommand(t, "outputs", "1", "--to", to)
		if got, err := os.ReadFile(filepath.Join(to, "big")); r.code != 0 || err != nil || string(got) != long {
			t.Errorf("exit code %d, %d bytes (%v): %s", r.code, len(got), err, r.err)
		}
		if n := connections.Load() - before; n < fewest || n > most {
			t.Errorf("it took %d connections", n)
		}
	})
}
