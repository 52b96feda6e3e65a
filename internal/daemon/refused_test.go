package daemon

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"drover/driver"
	"drover/driver/local"
	"drover/internal/config"
)

// logged is a log that a test can wait for.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// await waits until the log has a text this often.
func (l *logged) await(t *testing.T, text string, times int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		l.mu.Lock()
		log := l.text.String()
		l.mu.Unlock()
		if strings.Count(log, text) >= times {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%q was not logged %d times:\n%s", text, times, log)
		}
	}
}

func TestARefusedReloadLeavesNothingBehind(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	file := filepath.Join(t.TempDir(), "drover.yaml")
	write := func(listen, cloud string) {
		t.Helper()
		text := "version: 1\nfleet: lab\nstate: sqlite:drover.db\nlisten: " + listen + "\nclouds: {here: {driver: local, " + cloud + "}}\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("127.0.0.1:0", "max_instances: 1")
	log, ended := &logged{}, make(chan error, 1)
	go func() {
		ended <- Serve(t.Context(), Options{
			Program: Program{Drivers: map[string]Kind{"local": {Open: local.Open, Keys: local.Config{}}}},
			File:    file, Load: func() (*config.Config, error) { return config.Load(file) }, Log: slog.New(slog.NewTextHandler(log, nil)),
		})
	}()
	log.await(t, "msg=serving", 1)
	c, err := config.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	f, err := NewFolder(c)
	if err != nil {
		t.Fatal(err)
	}
	at, err := f.Announced()
	if err != nil {
		t.Fatal(err)
	}

	write(taken.Addr().String(), "max_instances: 22")
	log.await(t, "the configuration is invalid", 1)
	if kept, err := cloudLeft(f.Path(), "here"); err != nil || kept.MaxInstances != 1 {
		t.Errorf("its cloud, which is not in use, was kept: max_instances %d, %v", kept.MaxInstances, err)
	}

	// The kept clouds cannot be written.
	if err := errors.Join(os.RemoveAll(f.File(".clouds")), os.WriteFile(f.File(".clouds"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	write("0.0.0.0:"+at[strings.LastIndexByte(at, ':')+1:], "max_instances: 333")
	log.await(t, "the configuration is invalid", 2)
	if conn, err := net.Dial("tcp", at); err != nil {
		t.Errorf("the API is no longer served at its address: %v", err)
	} else {
		conn.Close()
	}
	if err := errors.Join(syscall.Kill(os.Getpid(), syscall.SIGTERM), <-ended); err != nil {
		t.Error(err)
	}
}

func TestASignalEndsAReloadThatWaitsForACloud(t *testing.T) {
	file := filepath.Join(t.TempDir(), "drover.yaml")
	waits, waited := make(chan struct{}), make(chan error, 1)
	slow := func(ctx context.Context, _ driver.Options) (driver.Cloud, error) {
		close(waits)
		<-ctx.Done()
		waited <- ctx.Err()
		return nil, ctx.Err()
	}
	configure(t, file, "local")
	log, ended := &logged{}, make(chan error, 1)
	go func() {
		ended <- Serve(t.Context(), Options{
			Program: Program{Drivers: map[string]Kind{"local": {Open: local.Open, Keys: local.Config{}}, "slow": {Open: slow, Keys: local.Config{}}}},
			File:    file, Load: func() (*config.Config, error) { return config.Load(file) }, Log: slog.New(slog.NewTextHandler(log, nil)),
		})
	}()
	log.await(t, "msg=serving", 1)
	configure(t, file, "slow")
	<-waits
	if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-waited; !errors.Is(err, context.Canceled) {
		t.Errorf("the signal waited until the cloud was given up: %v", err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
