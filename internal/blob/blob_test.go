package blob

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"drover"
)

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func openDir(t *testing.T, path string) *Dir {
	t.Helper()
	d, err := OpenDir(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// tree lists the files under a folder with their contents, and its empty folders.
func tree(t *testing.T, path string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(path, func(name string, entry os.DirEntry, err error) error {
		if err != nil || name == path {
			return err
		}
		rel, _ := filepath.Rel(path, name)
		if !entry.IsDir() {
			content, err := os.ReadFile(name)
			found[rel] = string(content)
			return err
		}
		if inside, err := os.ReadDir(name); err == nil && len(inside) == 0 {
			found[rel+"/"] = ""
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestDir(t *testing.T) {
	t.Run("stores contents by hash, and only once if put concurrently", func(t *testing.T) {
		path := t.TempDir()
		d := openDir(t, path)
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				hash, size, err := d.Put(t.Context(), strings.NewReader("hello"))
				if err != nil || hash != hashOf("hello") || size != 5 {
					t.Errorf("hash %q, size %d, error %v", hash, size, err)
				}
			})
		}
		all.Wait()
		hash := hashOf("hello")
		equal(t, "folder", tree(t, path), map[string]string{hash[:2] + "/" + hash: "hello", ".partial/": ""})
		if info, err := os.Stat(filepath.Join(path, hash[:2], hash)); err != nil || info.Mode() != 0o600 {
			t.Errorf("mode %v, error %v; want it readable by this user only", info.Mode(), err)
		}
	})

	t.Run("copies files, which may change afterwards", func(t *testing.T) {
		d := openDir(t, t.TempDir())
		file := filepath.Join(t.TempDir(), "a")
		if err := os.WriteFile(file, []byte("before"), 0o600); err != nil {
			t.Fatal(err)
		}
		hash, _, err := d.PutFile(t.Context(), file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("after!"), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := d.Open(hash)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if content, err := io.ReadAll(f); string(content) != "before" || err != nil {
			t.Errorf("content %q, error %v", content, err)
		}
	})

	t.Run("keeps nothing of contents that end in an error", func(t *testing.T) {
		path := t.TempDir()
		d := openDir(t, path)
		broken := errors.New("broken")
		if _, _, err := d.Put(t.Context(), io.MultiReader(strings.NewReader("hel"), failing{broken})); !errors.Is(err, broken) {
			t.Errorf("error %v, want that of the reader", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, _, err := d.Put(ctx, strings.NewReader("hello")); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want that of the context", err)
		}
		equal(t, "folder", tree(t, path), map[string]string{".partial/": ""})
	})

	t.Run("keeps contents under a given hash only if they match it and are not too long", func(t *testing.T) {
		path := t.TempDir()
		d := openDir(t, path)
		hash := hashOf("hello")
		for name, c := range map[string]struct {
			hash, content string
			limit         int64
		}{
			"another hash": {hash, "hullo", 5},
			"too long":     {hash, "hello", 4},
			"extra bytes":  {hash, "hello!", 5},
			"not a hash":   {"../x", "hello", 5},
		} {
			if err := d.PutAs(t.Context(), c.hash, strings.NewReader(c.content), c.limit); drover.KindOf(err) != drover.KindInvalid {
				t.Errorf("%s: error %v, want invalid", name, err)
			}
		}
		equal(t, "folder", tree(t, path), map[string]string{".partial/": ""})
		broken := errors.New("broken")
		if err := d.PutAs(t.Context(), hash, failing{broken}, 5); !errors.Is(err, broken) {
			t.Errorf("error %v, want that of the reader", err)
		}
		for range 2 {
			if err := d.PutAs(t.Context(), hash, strings.NewReader("hello"), 5); err != nil {
				t.Fatal(err)
			}
		}
		equal(t, "folder", tree(t, path), map[string]string{hash[:2] + "/" + hash: "hello", ".partial/": ""})
	})

	t.Run("repairs contents that a crash cut short", func(t *testing.T) {
		d := openDir(t, t.TempDir())
		hash, _, err := d.Put(t.Context(), strings.NewReader("hello"))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(filepath.Join(d.root.Name(), place(hash)), 0); err != nil {
			t.Fatal(err)
		}
		if _, _, err := d.Put(t.Context(), strings.NewReader("hello")); err != nil {
			t.Fatal(err)
		}
		if content, err := os.ReadFile(filepath.Join(d.root.Name(), place(hash))); string(content) != "hello" || err != nil {
			t.Errorf("content %q, error %v", content, err)
		}
	})

	t.Run("refuses what is not a hash", func(t *testing.T) {
		d := openDir(t, t.TempDir())
		for _, hash := range []string{"", "..", "../../etc/passwd", strings.ToUpper(hashOf("x")), hashOf("x") + "/"} {
			if _, err := d.Open(hash); drover.KindOf(err) != drover.KindInvalid || d.Has(hash) {
				t.Errorf("hash %q: error %v, want invalid", hash, err)
			}
		}
		if _, err := d.Open(hashOf("x")); drover.KindOf(err) != drover.KindNotFound || d.Has(hashOf("x")) {
			t.Errorf("error %v, want not found", err)
		}
	})

	t.Run("is swept when it is opened", func(t *testing.T) {
		path := t.TempDir()
		d := openDir(t, path)
		_, f, err := newPartial(d.root)
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		d.lock.Close() // as a crash does
		openDir(t, path)
		equal(t, "folder", tree(t, path), map[string]string{".partial/": ""})
	})
}

// failing is a reader that fails.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestBeginLogs(t *testing.T) {
	path := t.TempDir()
	r := openResults(t, path, DefaultLimits())
	begin := func(attempt int) {
		t.Helper()
		for range 2 { // the second time changes nothing
			if err := r.BeginLogs("greet", 3, attempt); err != nil {
				t.Fatal(err)
			}
		}
	}
	write := func(text string) {
		t.Helper()
		whole := func(int64, int64) (io.Reader, error) { return strings.NewReader(text), nil }
		if err := r.WriteLog(t.Context(), "greet", 3, Stdout, int64(len(text)), whole); err != nil {
			t.Fatal(err)
		}
	}
	begin(1)
	write("first")
	begin(3) // the second was lost
	if err := r.WriteLog(t.Context(), "greet", 3, Stderr, 1, func(int64, int64) (io.Reader, error) { return strings.NewReader("e"), nil }); err != nil {
		t.Fatal(err)
	}
	begin(4)
	write("fourth")
	equal(t, "results", tree(t, path), map[string]string{
		"logs/attempts/greet.3.1.out": "first", "logs/attempts/greet.3.3.err": "e", "logs/greet.3.out": "fourth", "logs/attempts/greet.3.latest.attempt": "4", ".partial/": "",
	})
	if n := r.Aside("greet", 3, 4); n != 6 {
		t.Errorf("%d bytes are set aside, want 6", n)
	}
	for attempt, want := range map[int]bool{1: true, 2: false, 3: true, 4: true, 5: false} {
		if r.HasLog("greet", 3, attempt) != want {
			t.Errorf("attempt %d has a log: %v", attempt, !want)
		}
	}
	if err := r.Remove("greet", []int{3}); err != nil {
		t.Fatal(err)
	}
	equal(t, "results", tree(t, path), map[string]string{"logs/attempts/": "", ".partial/": ""})

	t.Run("counts logs set aside before attempts were recorded", func(t *testing.T) {
		begin(1)
		write("first")
		for _, stream := range []string{Stdout, Stderr} {
			if err := os.WriteFile(filepath.Join(path, attemptLog("greet", 3, 1, stream)), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		write("second")
		begin(3)
		if text, err := os.ReadFile(filepath.Join(path, attemptLog("greet", 3, 2, Stdout))); err != nil || string(text) != "second" {
			t.Errorf("the second attempt's log is %q, %v", text, err)
		}
	})

	t.Run("fails if a log that would be lost cannot be set aside", func(t *testing.T) {
		write("third")
		folder := filepath.Join(path, "logs", "attempts")
		if err := errors.Join(os.RemoveAll(folder), os.WriteFile(folder, nil, 0o644)); err != nil {
			t.Fatal(err)
		}
		if err := r.BeginLogs("greet", 3, 4); err == nil {
			t.Error("no error although no file can be created")
		}
	})
}

func TestBeginLogsAfterACrash(t *testing.T) {
	for done := range 4 {
		t.Run(fmt.Sprintf("after step %d", done), func(t *testing.T) {
			r := openResults(t, t.TempDir(), DefaultLimits())
			write := func(stream, text string) {
				t.Helper()
				whole := func(int64, int64) (io.Reader, error) { return strings.NewReader(text), nil }
				if err := r.WriteLog(t.Context(), "a", -1, stream, int64(len(text)), whole); err != nil {
					t.Fatal(err)
				}
			}
			check := func(attempt int, stream, want string) {
				t.Helper()
				f, err := r.OpenAttemptLog("a", -1, attempt, stream)
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				if text, err := io.ReadAll(f); string(text) != want || err != nil {
					t.Errorf("%s of attempt %d is %q, %v", stream, attempt, text, err)
				}
			}
			write(Stdout, "out1")
			write(Stderr, "err1")
			steps := []func() error{
				func() error { return errors.Join(r.root.MkdirAll(attempts, 0o755), r.recordLogsOf("a", -1, 1)) },
				func() error { return r.root.Rename("logs/a.out", attemptLog("a", -1, 1, Stdout)) },
				func() error { return r.root.Rename("logs/a.err", attemptLog("a", -1, 1, Stderr)) },
			}
			for _, step := range steps[:done] {
				if err := step(); err != nil {
					t.Fatal(err)
				}
			}
			check(1, Stdout, "out1")
			check(1, Stderr, "err1")
			if err := r.BeginLogs("a", -1, 2); err != nil {
				t.Fatal(err)
			}
			write(Stdout, "out2")
			write(Stderr, "")
			check(1, Stdout, "out1")
			check(1, Stderr, "err1")
			check(2, Stdout, "out2")
		})
	}
}

// covers D15
func TestWriteLog(t *testing.T) {
	stream := strings.Repeat("h", 60) + strings.Repeat("m", 1000) + strings.Repeat("t", 60)
	section := func(offset, n int64) (io.Reader, error) { return strings.NewReader(stream[offset:]), nil }
	for name, c := range map[string]struct {
		size int64
		want string
	}{
		"keeps a short stream whole":                {100, stream[:100]},
		"keeps head and tail of one over the limit": {1120, stream[:60] + "\n[drover: 1000 bytes left out]\n" + stream[1060:]},
	} {
		t.Run(name, func(t *testing.T) {
			path := t.TempDir()
			r := openResults(t, path, Limits{Log: 120})
			if err := r.WriteLog(t.Context(), "greet", 3, Stdout, c.size, section); err != nil {
				t.Fatal(err)
			}
			equal(t, "results", tree(t, path), map[string]string{"logs/greet.3.out": c.want, ".partial/": ""})
		})
	}

	t.Run("replaces a growing log while its reader continues", func(t *testing.T) {
		path := t.TempDir()
		r := openResults(t, path, DefaultLimits())
		for _, piece := range []struct {
			offset int64
			text   string
		}{{0, "of an attempt that was lost"}, {0, "hh"}, {2, "h"}} {
			if err := r.GrowLog("greet", -1, Stdout, piece.offset, []byte(piece.text)); err != nil {
				t.Fatal(err)
			}
		}
		equal(t, "results", tree(t, path), map[string]string{"logs/greet.out": "hhh", ".partial/": ""})
		grown, _, err := r.OpenLog("greet", -1, Stdout)
		if err != nil {
			t.Fatal(err)
		}
		defer grown.Close()
		if err := r.WriteLog(t.Context(), "greet", -1, Stdout, 5, section); err != nil {
			t.Fatal(err)
		}
		equal(t, "results", tree(t, path), map[string]string{"logs/greet.out": "hhhhh", ".partial/": ""})
		if text, err := io.ReadAll(grown); err != nil || string(text) != "hhh" {
			t.Errorf("the open log reads %q, %v", text, err)
		}
	})

	t.Run("removes an earlier attempt's if there is no output", func(t *testing.T) {
		path := t.TempDir()
		r := openResults(t, path, DefaultLimits())
		for _, size := range []int64{5, 0} {
			if err := r.WriteLog(t.Context(), "greet", -1, Stderr, size, section); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(filepath.Join(path, "logs", "greet.err")); (err == nil) != (size > 0) {
				t.Errorf("size %d: error %v", size, err)
			}
		}
	})

	t.Run("keeps an earlier attempt's if it fails", func(t *testing.T) {
		path := t.TempDir()
		r := openResults(t, path, DefaultLimits())
		if err := r.WriteLog(t.Context(), "greet", -1, Stdout, 5, section); err != nil {
			t.Fatal(err)
		}
		broken := errors.New("broken")
		err := r.WriteLog(t.Context(), "greet", -1, Stdout, 9, func(int64, int64) (io.Reader, error) { return nil, broken })
		if !errors.Is(err, broken) {
			t.Errorf("error %v, want that of the section", err)
		}
		short := func(int64, int64) (io.Reader, error) { return strings.NewReader("hhh"), nil }
		if err := r.WriteLog(t.Context(), "greet", -1, Stdout, 9, short); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("error %v, want that of an early end", err)
		}
		equal(t, "results", tree(t, path), map[string]string{"logs/greet.out": "hhhhh", ".partial/": ""})
	})
}

func BenchmarkPut(b *testing.B) {
	d, err := OpenDir(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	content := bytes.Repeat([]byte("x"), 1<<20)
	for n := 0; b.Loop(); n++ {
		content[0], content[1], content[2] = byte(n), byte(n>>8), byte(n>>16)
		if _, _, err := d.Put(b.Context(), bytes.NewReader(content)); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(1 << 20)
}
