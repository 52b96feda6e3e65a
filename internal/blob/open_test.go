package blob

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"drover"
)

func read(t *testing.T, r io.ReadCloser) string {
	t.Helper()
	defer r.Close()
	content, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestOpenOutput(t *testing.T) {
	path := t.TempDir()
	r := openResults(t, path, DefaultLimits())
	outside := filepath.Join(t.TempDir(), "secret")
	for name, content := range map[string]string{
		outside: "secret", filepath.Join(path, "greet/3/deep/a"): "hello", filepath.Join(path, "greet/4/b"): "another's",
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	in := func(name string) string { return filepath.Join(path, "greet/3", name) }
	for _, err := range []error{
		os.Symlink(outside, in("out")), os.Symlink("../4/b", in("next")), os.Symlink("loop", in("loop")), os.Symlink("deep/a", in("link")),
		os.Symlink(filepath.Dir(outside), in("folder")), syscall.Mkfifo(in("pipe"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}

	t.Run("reads files in the element's folder, also through links within it", func(t *testing.T) {
		for _, name := range []string{"deep/a", "link"} {
			f, err := r.OpenOutput("greet", 3, drover.File{Path: name})
			if err != nil {
				t.Fatal(err)
			}
			if got := read(t, f); got != "hello" {
				t.Errorf("%s: %q", name, got)
			}
		}
	})

	t.Run("finds nothing else, wherever a path or a link leads", func(t *testing.T) {
		for _, name := range []string{
			"", ".", "deep", "none", "deep/a/more", "../4/b", "deep/../../4/b", "../../../etc/passwd", outside, "out", "next", "loop", "folder/secret", "pipe",
		} {
			if f, err := r.OpenOutput("greet", 3, drover.File{Path: name}); drover.KindOf(err) != drover.KindNotFound {
				t.Errorf("%q: %v, error %v; want not found", name, f, err)
			}
		}
		if _, err := r.OpenOutput("greet", 5, drover.File{Path: "a"}); drover.KindOf(err) != drover.KindNotFound {
			t.Errorf("error %v, want not found", err)
		}
		if _, err := r.OpenOutput("..", 5, drover.File{Path: "a"}); drover.KindOf(err) != drover.KindInvalid {
			t.Errorf("error %v, want invalid", err)
		}
	})
}

func TestOpenLog(t *testing.T) {
	path := t.TempDir()
	r := openResults(t, path, DefaultLimits())
	section := func(offset, n int64) (io.Reader, error) { return strings.NewReader("hello"[offset:]), nil }
	if err := r.WriteLog(t.Context(), "greet", 3, Stderr, 5, section); err != nil {
		t.Fatal(err)
	}

	t.Run("reads what was kept, from any offset", func(t *testing.T) {
		f, size, err := r.OpenLog("greet", 3, Stderr)
		if err != nil || size != 5 {
			t.Fatalf("size %d, error %v", size, err)
		}
		if _, err := f.Seek(2, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		if got := read(t, f); got != "llo" {
			t.Errorf("%q, want the rest", got)
		}
	})

	t.Run("reports that there is none", func(t *testing.T) {
		if err := os.Symlink("/etc/passwd", filepath.Join(path, "logs", "led.out")); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			job    string
			index  int
			stream string
			kind   drover.ErrorKind
		}{
			{"greet", 3, Stdout, drover.KindNotFound}, {"greet", -1, Stderr, drover.KindNotFound}, {"led", -1, Stdout, drover.KindNotFound},
			{"greet", 3, "../x", drover.KindInvalid}, {"../greet", 3, Stderr, drover.KindInvalid},
		} {
			if _, _, err := r.OpenLog(c.job, c.index, c.stream); drover.KindOf(err) != c.kind {
				t.Errorf("%+v: error %v", c, err)
			}
		}
	})
}
