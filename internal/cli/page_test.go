package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// page serves a page at an address, once the address is free: page ADDRESS FOLDER. Its folder has the file pid; the
// file fail, the number of requests that it refuses next; and the file served, one byte per request that it answered.
func page(args []string) error {
	address, folder := args[0], args[1]
	listener, err := net.Listen("tcp", address)
	for deadline := time.Now().Add(time.Minute); errors.Is(err, syscall.EADDRINUSE) && time.Now().Before(deadline); listener, err = net.Listen("tcp", address) {
		time.Sleep(50 * time.Millisecond)
	}
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "pid"), fmt.Append(nil, os.Getpid()), 0o600); err != nil {
		return err
	}
	one := make(chan bool, 1) // one request at a time
	return http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		one <- true
		defer func() { <-one }()
		if err := answer(folder); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	}))
}

// answer counts a request, or returns an error if the page must refuse it.
func answer(folder string) error {
	left, err := refusals(folder)
	switch {
	case err != nil:
		return err
	case left > 0:
		return errors.Join(errors.New("refused on request"), refuse(folder, left-1))
	}
	f, err := os.OpenFile(filepath.Join(folder, "served"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(".")
	return err
}

// refusals returns how many requests are still to be refused.
func refusals(folder string) (int, error) {
	text, err := os.ReadFile(filepath.Join(folder, "fail"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

// refuse makes the page refuse the next n requests.
func refuse(folder string, n int) error {
	aside := filepath.Join(folder, "fail.new")
	if err := os.WriteFile(aside, fmt.Append(nil, n), 0o600); err != nil {
		return err
	}
	return os.Rename(aside, filepath.Join(folder, "fail"))
}
