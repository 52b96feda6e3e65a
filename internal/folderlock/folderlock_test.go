package folderlock

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestLocks(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "folder")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	wantHeld := func(want bool) {
		t.Helper()
		if held, err := Held(folder); held != want || err != nil {
			t.Errorf("held: %v, %v", held, err)
		}
	}
	wantHeld(false)
	first, err := Try(folder)
	if first == nil || err != nil {
		t.Fatal(first, err)
	}
	wantHeld(true)
	if second, err := Try(folder); second != nil || err != nil {
		t.Errorf("it was locked twice: %v, %v", second, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*lockInterval)
	defer cancel()
	if _, err := Lock(ctx, folder); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the wait ended with %v", err)
	}
	waited := make(chan error, 1)
	go func() {
		second, err := Lock(t.Context(), folder)
		if err == nil {
			Unlock(second)
		}
		waited <- err
	}()
	Unlock(first)
	select {
	case err := <-waited:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the waiting call did not get the lock")
	}
	wantHeld(false)
	if _, err := Try(folder + "x"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
