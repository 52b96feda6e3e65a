package remote

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

// crowdCommand makes the test binary a crowd of instances, in a separate process so that their cost does not count as
// the controller's.
const crowdCommand = "be-a-crowd"

// beCrowd serves every connection to an address of its own choice, which it prints, until its standard input ends.
func beCrowd() int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 1
	}
	key, err := ssh.ParsePrivateKey([]byte(mustHostKey("i-1").Private.Reveal()))
	if err != nil {
		return 1
	}
	f := &fakeRunner{}
	i := &fakeInstance{exec: f.exec}
	i.config.NoClientAuth = true
	i.config.AddHostKey(key)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go i.serve(conn)
		}
	}()
	fmt.Println(l.Addr())
	bufio.NewReader(os.Stdin).ReadString('\n')
	return 0
}

func mustHostKey(name string) HostKey {
	k, err := testKey().HostKey(name)
	if err != nil {
		panic(err)
	}
	return k
}

// crowd starts a crowd and returns how to reach it.
func crowd(t *testing.T) Target {
	cmd := exec.Command("/proc/self/exe", crowdCommand)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	target := target(newFakeInstance(t, "i-1"), "i-1")
	target.Address, target.Dial = strings.TrimSpace(address), nil
	return target
}

// footprint returns how many goroutines this process has, and how many bytes of heap and stacks.
func footprint() (goroutines int, bytes uint64) {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return runtime.NumGoroutine(), m.HeapInuse + m.StackInuse
}

// A controller is connected to thousands of idle instances.
// covers F4
func TestAnIdleConnectionCostsLittle(t *testing.T) {
	const conns, maxGoroutines, maxBytes = 100, 8, 256 << 10
	target := crowd(t)
	target.Timeouts.ProbeInterval = 100 * time.Millisecond
	ctx, cancel := context.WithCancel(testContext(t))
	goroutines, bytes := footprint()
	var all []*Conn
	ended := make(chan error, conns)
	for range conns {
		c, err := Connect(ctx, target)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
		go func() { ended <- c.Run(ctx, deaf{}) }()
	}
	// Each has been pinged once.
	connected := time.Now()
	waitUntil(t, "all answer", func() bool {
		for _, c := range all {
			if c.Heard().Before(connected) {
				return false
			}
		}
		return true
	})

	nowGoroutines, nowBytes := footprint()
	each, memory := float64(nowGoroutines-goroutines)/conns, int64(nowBytes-bytes)/conns
	t.Logf("%.2f goroutines and %d KiB each", each, memory>>10)
	if each > maxGoroutines || memory > maxBytes {
		t.Errorf("%.2f goroutines and %d bytes each", each, memory)
	}

	cancel()
	for range conns {
		<-ended
	}
	waitUntil(t, "every goroutine ends", func() bool { return runtime.NumGoroutine() <= goroutines+2 })
}
