package blob

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"drover"
)

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func openResults(t *testing.T, path string, limits Limits) *Results {
	t.Helper()
	r, err := OpenResults(path, limits)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// file is an entry of an archive; one whose name ends in a slash is a folder.
func file(name, content string) tar.Header {
	if strings.HasSuffix(name, "/") {
		return tar.Header{Name: name, Typeflag: tar.TypeDir, Mode: 0o777}
	}
	return tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o4640, Size: int64(len(content)), Linkname: content}
}

// archive makes an archive of entries; the content of a file is in its Linkname.
func archive(t testing.TB, entries ...tar.Header) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range entries {
		content := ""
		if h.Typeflag == tar.TypeReg {
			content, h.Linkname = h.Linkname, ""
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestReceive(t *testing.T) {
	small := Limits{Files: 4, Bytes: 10, Name: 40, Names: 100, Log: 10}

	t.Run("unpacks and describes files and folders", func(t *testing.T) {
		path := t.TempDir()
		r := openResults(t, path, small)
		run := file("bin/run", "go")
		run.Mode = 0o711
		files, err := r.Receive(t.Context(), "greet", 3, bytes.NewReader(archive(t, file("a.txt", "hello"), file("bin/", ""), run)))
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "files", files, []drover.File{
			{Path: "a.txt", Mode: 0o644, Size: 5, Hash: hashOf("hello")}, {Path: "bin/run", Mode: 0o755, Size: 2, Hash: hashOf("go")},
		})
		equal(t, "results", tree(t, path), map[string]string{"greet/3/a.txt": "hello", "greet/3/bin/run": "go", ".partial/": ""})
		if info, err := os.Stat(filepath.Join(path, "greet/3/a.txt")); err != nil || info.Mode()&^0o644 != 0 {
			t.Errorf("mode %v, error %v; want no bits beyond 0644", info.Mode(), err)
		}
		out, err := r.OpenOutput("greet", 3, files[1])
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		if content, err := io.ReadAll(out); string(content) != "go" || err != nil {
			t.Errorf("content %q, error %v", content, err)
		}
	})

	t.Run("replaces an earlier attempt's outputs", func(t *testing.T) {
		path := t.TempDir()
		r := openResults(t, path, small)
		for _, name := range []string{"old", "new"} {
			if _, err := r.Receive(t.Context(), "join", -1, bytes.NewReader(archive(t, file(name, "x")))); err != nil {
				t.Fatal(err)
			}
		}
		equal(t, "results", tree(t, path), map[string]string{"join/new": "x", ".partial/": ""})
		if _, err := r.Receive(t.Context(), "join", -1, bytes.NewReader(archive(t))); err != nil {
			t.Fatal(err)
		}
		equal(t, "results", tree(t, path), map[string]string{".partial/": ""})
	})

	t.Run("unpacks many files like few, up to the limit", func(t *testing.T) {
		limits := DefaultLimits()
		limits.Files = 3 * fewEntries
		r := openResults(t, t.TempDir(), limits)
		var headers []tar.Header
		for i := range limits.Files - 1 {
			headers = append(headers, file(fmt.Sprint("sub/", i), "x"))
		}
		files, err := r.Receive(t.Context(), "many", -1, bytes.NewReader(archive(t, headers...)))
		if err != nil || len(files) != len(headers) {
			t.Errorf("%d files, error %v", len(files), err)
		}
		if _, err := r.Receive(t.Context(), "many", -1, bytes.NewReader(archive(t, append(headers, file("one", "x"), file("more", "x"))...))); drover.KindOf(err) != drover.KindInvalid ||
			!strings.Contains(err.Error(), "pack them into an archive") {
			t.Errorf("one too many: %v", err)
		}
	})

	t.Run("refuses a link that leads out through others", func(t *testing.T) {
		path := t.TempDir()
		r := openResults(t, path, DefaultLimits())
		for _, to := range []string{"a/b/c/up/../../outside", "a/b/c/up/../other/secret"} {
			up := tar.Header{Name: "a/b/c/up", Typeflag: tar.TypeSymlink, Linkname: "../../.."}
			link := tar.Header{Name: "host", Typeflag: tar.TypeSymlink, Linkname: to}
			_, err := r.Receive(t.Context(), "odd", -1, bytes.NewReader(archive(t, file("a/b/c/x", "x"), up, link)))
			if drover.KindOf(err) != drover.KindInvalid || !strings.Contains(err.Error(), "points outside the folder") {
				t.Errorf("%s: %v", to, err)
			}
		}
		equal(t, "results", tree(t, path), map[string]string{".partial/": ""})
	})

	t.Run("does not follow a ring of links", func(t *testing.T) {
		r := openResults(t, t.TempDir(), DefaultLimits())
		ring, n := []tar.Header{}, 10_000
		if testing.Short() {
			n = 1000
		}
		for i := range n {
			ring = append(ring, tar.Header{Name: fmt.Sprint("l", i), Typeflag: tar.TypeSymlink, Linkname: fmt.Sprint("l", (i+1)%n), Mode: 0o777})
		}
		if _, err := r.Receive(t.Context(), "train", -1, bytes.NewReader(archive(t, ring...))); err != nil {
			t.Error(err)
		}
	})
	t.Run("keeps links, and lists their targets under the links' names", func(t *testing.T) {
		path := t.TempDir()
		r := openResults(t, path, DefaultLimits())
		symlink := func(name, to string) tar.Header {
			return tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: to, Mode: 0o777}
		}
		files, err := r.Receive(t.Context(), "train", -1, bytes.NewReader(archive(t, file("d/a", "1"), file("d/e/b", "2"),
			symlink("latest", "d"), symlink("d/e/up", "../a"), symlink("again", "latest"), symlink("d/self", "."))))
		if err != nil {
			t.Fatal(err)
		}
		var paths []string
		for _, f := range files {
			paths = append(paths, f.Path+" "+f.Hash[:4])
			out, err := r.OpenOutput("train", -1, f)
			if err != nil {
				t.Errorf("%s: %v", f.Path, err)
				continue
			}
			out.Close()
		}
		one, two := hashOf("1")[:4], hashOf("2")[:4]
		equal(t, "files", paths, []string{
			"d/a " + one, "d/e/b " + two, "latest/a " + one, "latest/e/b " + two, "d/e/up " + one, "again/a " + one, "again/e/b " + two,
		})
		if to, err := os.Readlink(filepath.Join(path, "train/latest")); to != "d" {
			t.Errorf("the link leads to %q (%v)", to, err)
		}
	})

	t.Run("keeps odd names", func(t *testing.T) {
		r := openResults(t, t.TempDir(), DefaultLimits())
		files, err := r.Receive(t.Context(), "odd", -1, bytes.NewReader(archive(t, file("a\nb", "x"), file("\xff/\xfe", "y"))))
		if err != nil || len(files) != 2 || files[0].Path != "a\nb" || files[1].Path != "\xff/\xfe" {
			t.Fatalf("%+v, %v", files, err)
		}
		for _, f := range files {
			out, err := r.OpenOutput("odd", -1, f)
			if err != nil {
				t.Fatal(err)
			}
			out.Close()
		}
	})

	link := tar.Header{Name: "link", Typeflag: tar.TypeSymlink, Linkname: "/etc"}
	out := tar.Header{Name: "d/link", Typeflag: tar.TypeSymlink, Linkname: "../../a"}
	within := tar.Header{Name: "link", Typeflag: tar.TypeSymlink, Linkname: "d"}
	hard := tar.Header{Name: "hard", Typeflag: tar.TypeLink, Linkname: "../../secret"}
	whole := archive(t, file("a", "x"))
	for name, stream := range map[string][]byte{
		"a path that leads out":                archive(t, file("../a", "x")),
		"an absolute path":                     archive(t, file("/a", "x")),
		"a path with dots":                     archive(t, file("b/../../a", "x")),
		"names too long in total":              archive(t, file(strings.Repeat("a", 40), "x"), file(strings.Repeat("b", 40), "x"), file(strings.Repeat("c", 40), "x")),
		"a name over the limit":                archive(t, file(strings.Repeat("a", 41), "x")),
		"a link to an absolute path":           archive(t, link),
		"a link that leads out":                archive(t, file("a", "x"), out),
		"a file behind a link":                 archive(t, file("d/", ""), within, file("link/a", "x")),
		"names too long through links":         archive(t, file(strings.Repeat("a", 38)+"/1", ""), tar.Header{Name: strings.Repeat("l", 36), Typeflag: tar.TypeSymlink, Linkname: strings.Repeat("a", 38)}),
		"a long name through a link":           archive(t, file("d/"+strings.Repeat("a", 30), ""), tar.Header{Name: strings.Repeat("l", 20), Typeflag: tar.TypeSymlink, Linkname: "d"}),
		"names with many control characters":   archive(t, file(strings.Repeat("\x01", 20), "x")),
		"too many files reached through links": archive(t, file("d/1", ""), file("d/2", ""), within),
		"a hard link":                          archive(t, hard),
		"a device":                             archive(t, tar.Header{Name: "null", Typeflag: tar.TypeChar}),
		"a duplicate name":                     archive(t, file("a", "x"), file("a", "y")),
		"a file that is also a folder":         archive(t, file("a", "x"), file("a/b", "y")),
		"too many files":                       archive(t, file("1", ""), file("2", ""), file("3", ""), file("4", ""), file("5", "")),
		"too many folders in one name":         archive(t, file("1/2/3/4/5/6", "")),
		"a file over the limit":                archive(t, file("a", "12345678901")),
		"files over the limit in total":        archive(t, file("a", "123456"), file("b", "123456")),
		"a stream cut within a file":           whole[:512],
		"a stream cut within a header":         whole[:100],
		"text that is not an archive":          []byte(strings.Repeat("hello", 300)),
		"a stream with too much padding":       append(bytes.Clone(whole), make([]byte, maxPadding+1)...),
	} {
		t.Run("refuses "+name+" and keeps the earlier outputs", func(t *testing.T) {
			path := t.TempDir()
			r := openResults(t, path, small)
			if _, err := r.Receive(t.Context(), "join", -1, bytes.NewReader(archive(t, file("old", "x")))); err != nil {
				t.Fatal(err)
			}
			if files, err := r.Receive(t.Context(), "join", -1, bytes.NewReader(stream)); err == nil {
				t.Errorf("no error, files %+v", files)
			}
			equal(t, "results", tree(t, path), map[string]string{"join/old": "x", ".partial/": ""})
		})
	}

	t.Run("reports an error behind the archive", func(t *testing.T) {
		path := t.TempDir()
		r := openResults(t, path, small)
		broken := errors.New("not whole")
		stream := io.MultiReader(bytes.NewReader(whole), failing{broken})
		if _, err := r.Receive(t.Context(), "join", -1, stream); !errors.Is(err, broken) {
			t.Errorf("error %v, want that of the stream", err)
		}
		equal(t, "results", tree(t, path), map[string]string{".partial/": ""})
	})

	t.Run("reports that the folder was removed", func(t *testing.T) {
		path := t.TempDir()
		r := openResults(t, path, small)
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Receive(t.Context(), "join", -1, bytes.NewReader(whole)); drover.KindOf(err) != drover.KindTransient || !strings.Contains(err.Error(), "was removed; stop Drover") {
			t.Error(err)
		}
	})

	t.Run("refuses a job whose name is not a folder's", func(t *testing.T) {
		r := openResults(t, t.TempDir(), small)
		for _, job := range []string{"", ".", "..", "a/b", "/a", ".partial", "logs"} {
			if _, err := r.Receive(t.Context(), job, -1, bytes.NewReader(whole)); drover.KindOf(err) != drover.KindInvalid {
				t.Errorf("job %q: error %v, want invalid", job, err)
			}
		}
	})
}

func TestOpenResults(t *testing.T) {
	t.Run("sweeps what a crash left and keeps complete results", func(t *testing.T) {
		path := t.TempDir()
		r := openResults(t, path, DefaultLimits())
		if _, err := r.Receive(t.Context(), "join", -1, bytes.NewReader(archive(t, file("a", "x")))); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(path, partial, "half", "a"), 0o755); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenResults(path, DefaultLimits()); drover.KindOf(err) != drover.KindTransient {
			t.Errorf("opened twice at once: %v, want a transient error", err)
		}
		r.lock.Close() // as a crash does
		again := openResults(t, path, DefaultLimits())
		equal(t, "results", tree(t, path), map[string]string{"join/a": "x", ".partial/": ""})
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
		equal(t, "results once closed", tree(t, path), map[string]string{"join/a": "x"})
	})
}

func FuzzReceive(f *testing.F) {
	f.Add(archive(f, file("a", "x"), file("b/", ""), file("b/c", "yy")))
	f.Fuzz(func(t *testing.T, stream []byte) {
		path := t.TempDir()
		r := openResults(t, filepath.Join(path, "in"), Limits{Files: 10, Bytes: 1 << 20, Name: 100, Names: 1000, Log: 10})
		files, err := r.Receive(t.Context(), "join", -1, bytes.NewReader(stream))
		found := len(tree(t, path))
		if err == nil && len(files) > 10 || err != nil && found != 1 {
			t.Fatal(fmt.Sprint("files ", files, ", error ", err, ", found ", found))
		}
	})
}
