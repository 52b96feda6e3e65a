package runner_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"drover"
	"drover/internal/wire"
)

// ask sends a request and returns the reply.
func (c *channel) ask(r wire.Request) wire.Reply {
	c.t.Helper()
	if err := c.Write(r); err != nil {
		c.t.Fatal(err)
	}
	return c.reply()
}

func (c *channel) reply() (r wire.Reply) {
	c.t.Helper()
	if err := c.Read(&r); err != nil {
		c.t.Fatal(err)
	}
	return r
}

// log gets a log from an offset.
func (c *channel) log(id drover.AttemptID, stream string, offset int64) string {
	c.t.Helper()
	r := c.ask(wire.Request{Op: wire.GetLog, ID: id, Stream: stream, Offset: offset})
	if r.Error != "" {
		c.t.Fatal(r.Error)
	}
	text, err := io.ReadAll(io.LimitReader(c.Bytes(), r.Size))
	if err != nil {
		c.t.Fatal(err)
	}
	return string(text)
}

// covers D15
func TestTails(t *testing.T) {
	c := newInstance(t).connect()
	for n, test := range []struct{ name, script, want string }{
		{"a stream as long as the limit is whole", `head -c 4096 /dev/zero | tr '\0' a`, strings.Repeat("a", 4096)},
		{"the end of a longer stream is kept", `echo first; head -c 4096 /dev/zero | tr '\0' a`, strings.Repeat("a", 4096)},
		{"a character cut in half is left out", `printf 'é'; head -c 4095 /dev/zero | tr '\0' a`, strings.Repeat("a", 4095)},
		{"invalid UTF-8 does not make it longer", `head -c 8192 /dev/zero | tr '\0' '\377'`, "?"},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := c.ran(attempt(int64(n+1), 1), test.script)
			if !utf8.ValidString(e.Stdout) || len(e.Stdout) > drover.TailBytes || !strings.HasSuffix(e.Stdout, test.want) {
				t.Errorf("got %d bytes, %.20q", len(e.Stdout), e.Stdout)
			}
			if len(test.want) > 1 && e.Stdout != test.want {
				t.Errorf("got %.20q of %d, want %.20q of %d", e.Stdout, len(e.Stdout), test.want, len(test.want))
			}
		})
	}
	t.Run("a short stream with invalid UTF-8 does not look whole", func(t *testing.T) {
		if e := c.ran(attempt(9, 1), `printf 'a\377b'`); e.StdoutLen != 3 || len(e.Stdout) == 3 {
			t.Errorf("got %q of %d", e.Stdout, e.StdoutLen)
		}
	})
}

// covers D15
func TestLogs(t *testing.T) {
	i := newInstance(t)
	c, id := i.connect(), attempt(1, 1)
	c.start(sh(id, gate))
	i.awaitLine(id, "ready")
	t.Run("a growing log can be read from any offset", func(t *testing.T) {
		ch := i.bulk()
		got := []string{ch.log(id, "stdout", 0), ch.log(id, "stdout", 2), ch.log(id, "stdout", 99), ch.log(id, "stderr", 0)}
		if want := []string{"ready\n", "ady\n", "", ""}; !cmp.Equal(got, want) {
			t.Error(cmp.Diff(want, got))
		}
	})
	t.Run("a request for something missing is refused, and the channel stays open", func(t *testing.T) {
		ch := i.bulk()
		for _, r := range []wire.Request{
			{Op: wire.GetLog, ID: attempt(9, 9), Stream: "stdout"},
			{Op: wire.GetLog, ID: id, Stream: "../lock"},
			{Op: "dance"},
		} {
			if reply := ch.ask(r); reply.Error == "" {
				t.Errorf("%+v was not refused", r)
			}
		}
		if got := ch.log(id, "stdout", 0); got != "ready\n" {
			t.Errorf("got %q", got)
		}
	})
}

// outputs returns an attempt's outputs as path → content; folders end with a slash.
func (c *channel) outputs(id drover.AttemptID) (map[string]string, wire.Reply) {
	c.t.Helper()
	if r := c.ask(wire.Request{Op: wire.GetOutputs, ID: id}); r.Error != "" {
		return nil, r
	}
	stream := &wire.ChunkReader{R: c.Bytes()}
	archive, files := tar.NewReader(stream), make(map[string]string)
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			c.t.Fatal(err)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			c.t.Fatal(err)
		}
		if h.Typeflag == tar.TypeSymlink {
			content = []byte("-> " + h.Linkname)
		}
		files[h.Name] = string(content)
	}
	if _, err := io.Copy(io.Discard, stream); err != nil {
		c.t.Fatal(err)
	}
	return files, c.reply()
}

func TestOutputs(t *testing.T) {
	i := newInstance(t)
	c := i.connect()
	for n, test := range []struct {
		name, script string
		patterns     []string
		want         map[string]string
		leftOut      []string
		unmatched    []int
	}{
		{"matching files are sent once each", "echo 1 > a.png; echo 2 > b.png; echo 3 > c.txt", []string{"*.png", "a.*"}, map[string]string{"a.png": "1\n", "b.png": "2\n"}, nil, nil},
		{"a failed attempt's outputs are sent too", "echo 1 > a; exit 1", []string{"a"}, map[string]string{"a": "1\n"}, nil, nil},
		{"a folder is sent with everything in it", "mkdir -p d/e f; echo 1 > d/e/x; echo 2 > f/y", []string{"./d/"}, map[string]string{"d/": "", "d/e/": "", "d/e/x": "1\n"}, nil, nil},
		{"two stars match any depth", "mkdir -p d/e; echo 1 > d/e/x.png; echo 2 > y.png", []string{"**/*.png"}, map[string]string{"d/e/x.png": "1\n", "y.png": "2\n"}, nil, nil},
		{"everything", "mkdir d; echo 1 > d/x; echo 2 > .hidden", []string{"**"}, map[string]string{"d/": "", "d/x": "1\n", ".hidden": "2\n"}, nil, nil},
		{"patterns that match nothing are reported", "echo 1 > a", []string{"*.png", "a", "d/**"}, map[string]string{"a": "1\n"}, nil, []int{0, 2}},
		{"two stars match nothing in an empty folder", "true", []string{"**"}, map[string]string{}, nil, []int{0}},
		{"a link is sent as a link if its target is sent too", "mkdir d; echo 1 > d/a; ln -s d/a b; ln -s b c; ln -s ../d d/up; ln -s d e", []string{"**"},
			map[string]string{"d/": "", "d/a": "1\n", "b": "-> d/a", "c": "-> b", "d/up": "-> ../d", "e": "-> d"}, nil, nil},
		{"a link to any other file is sent as that file", "echo 1 > a; ln -s a b", []string{"b"}, map[string]string{"b": "1\n"}, nil, nil},
		{"links that leave the folder or lead nowhere are left out", "ln -s /etc/passwd p; ln -s ../stdout s; ln -s nowhere n; mkdir d; ln -s d l; echo 1 > a", []string{"[^d]"}, map[string]string{"a": "1\n"},
			[]string{`"l": a link to a folder that no pattern matches`, `"n": a broken link`, `"p": a link that points outside the job's folder`, `"s": a link that points outside the job's folder`}, nil},
		{"links that are left out match nothing, but are named, even if a pattern is the name of one", "ln -s /etc/passwd p; mkdir d; ln -s nowhere d/n; ln -s r r; ln -s .. o", []string{"p", "*/n", "r", "o/*", "o/x", "x"}, map[string]string{},
			[]string{`"d/n": a broken link`, `"p": a link that points outside the job's folder`, `"r": a broken link`}, []int{0, 1, 2, 3, 4, 5}},
		{"what is left out matches nothing", "mkfifo f; ln -s f l; ln -s a m; echo 1 > a", []string{"[fl]", "f", "[lm]", "m", "*"}, map[string]string{"a": "1\n", "m": "-> a"},
			[]string{`"f": a FIFO`, `"l": a link to a FIFO`}, []int{0, 1}},
		{"a FIFO in place of a folder does not block", "mkfifo pipe; echo 1 > a", []string{"pipe/*", "a", "pipe/x/*"}, map[string]string{"a": "1\n"}, nil, []int{0, 2}},
		{"a FIFO is left out", "mkfifo f; ln -s f l; echo 1 > a", []string{"*"}, map[string]string{"a": "1\n"}, []string{`"f": a FIFO`, `"l": a link to a FIFO`}, nil},
		{"odd names are sent unchanged", `mkdir "$(printf 'd\377')"; echo 1 > "$(printf 'a\nb')"; echo 2 > "$(printf 'd\377/\376')"`, []string{"**"},
			map[string]string{"a\nb": "1\n", "d\xff/": "", "d\xff/\xfe": "2\n"}, nil, nil},
		{"a read-only file is sent", "echo 1 > a; chmod 400 a", []string{"*"}, map[string]string{"a": "1\n"}, nil, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			id := attempt(int64(n+1), 1)
			s := sh(id, test.script)
			s.Outputs = test.patterns
			c.start(s)
			c.exited(id)
			files, reply := i.bulk().outputs(id)
			slices.Sort(reply.LeftOut)
			if reply.Error != "" || !cmp.Equal(reply.LeftOut, test.leftOut) || !cmp.Equal(reply.Unmatched, test.unmatched) {
				t.Errorf("reply %+v", reply)
			}
			if !cmp.Equal(files, test.want) {
				t.Error(cmp.Diff(test.want, files))
			}
		})
	}
	t.Run("patterns that are malformed or lead outside are refused", func(t *testing.T) {
		for n, pattern := range []string{"../*", "/etc/passwd", "a/../../b", "[", ""} {
			id := attempt(int64(100+n), 1)
			s := sh(id, "true")
			s.Outputs = []string{pattern}
			c.start(s)
			c.refused(id)
		}
	})
	t.Run("a large output is sent whole, even by the next daemon", func(t *testing.T) {
		id := attempt(200, 1)
		s := sh(id, "head -c 3000000 /dev/zero > big")
		s.Outputs = []string{"big"}
		c.start(s)
		c.exited(id)
		i.kill(i.daemon())
		i.connect()
		files, reply := i.bulk().outputs(id)
		if reply.Error != "" || reply.Size != 3000000 || files["big"] != string(bytes.Repeat([]byte{0}, 3000000)) {
			t.Errorf("reply %+v and %d bytes", reply, len(files["big"]))
		}
	})
}

// covers D15
func TestLargeOutput(t *testing.T) {
	t.Run("a command's output takes none of the runner's memory", func(t *testing.T) {
		i := newInstance(t)
		c, id := i.connect(), attempt(1, 1)
		c.start(sh(id, "head -c 300000000 /dev/zero; echo ready; sleep 1000"))
		until(t, "the output is printed", func() bool {
			info, err := os.Stat(i.attemptPath(id, "stdout"))
			return err == nil && info.Size() > 300_000_000
		})
		for what, pid := range map[string]int{"daemon": i.daemon(), "supervisor": i.supervisor(id)} {
			if peak := peakMemory(pid); peak == 0 || peak > 40*drover.MiB {
				t.Errorf("the %s used %v", what, peak)
			}
		}
		c.stop(id, 0)
		if e := c.exited(id); e.StdoutLen < 300_000_000 || len(e.Stdout) != drover.TailBytes {
			t.Errorf("got %d bytes of %d", len(e.Stdout), e.StdoutLen)
		}
	})
}
