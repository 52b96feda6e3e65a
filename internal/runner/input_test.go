package runner_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"drover"
	"drover/internal/wire"
)

// file returns an input with the given content.
func file(path, content string, mode uint32) drover.File {
	sum := sha256.Sum256([]byte(content))
	return drover.File{Path: path, Mode: mode, Size: int64(len(content)), Hash: hex.EncodeToString(sum[:])}
}

// put uploads a blob and returns the last reply.
func (c *channel) put(hash, content string) wire.Reply {
	c.t.Helper()
	if r := c.ask(wire.Request{Op: wire.PutBlob, Hash: hash, Size: int64(len(content))}); r.Error != "" {
		return r
	}
	if _, err := c.write.Write([]byte(content)); err != nil {
		c.t.Fatal(err)
	}
	return c.reply()
}

func TestInputs(t *testing.T) {
	i := newInstance(t)
	c := i.connect()
	a, b := file("a.txt", "alpha\n", 0o644), file("in/b.sh", "#!/bin/sh\necho beta\n", 0o755)
	t.Run("the runner asks for missing contents and, once it has them, starts the attempt", func(t *testing.T) {
		id := attempt(1, 1)
		s := sh(id, "cat a.txt; in/b.sh").withFiles(a, b, file("copy", "alpha\n", 0o600))
		c.start(s)
		m := c.want("Missing", func(m wire.Message) bool { return m.Missing != nil })
		if want := (wire.Missing{ID: id, Hashes: []string{a.Hash, b.Hash}}); !cmp.Equal(*m.Missing, want) {
			t.Fatal(cmp.Diff(want, *m.Missing))
		}
		ch := i.bulk()
		for _, reply := range []wire.Reply{ch.put(a.Hash, "alpha\n"), ch.put(b.Hash, "#!/bin/sh\necho beta\n"), ch.put(a.Hash, "alpha\n")} {
			if reply.Error != "" {
				t.Fatal(reply.Error)
			}
		}
		c.start(s)
		if e := c.exited(id); e.Stdout != "alpha\nbeta\n" {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("a job's changes to its inputs do not reach the next job", func(t *testing.T) {
		c.start(sh(attempt(2, 1), "echo spoilt > a.txt; chmod 777 a.txt").withFiles(a))
		c.exited(attempt(2, 1))
		c.start(sh(attempt(3, 1), "cat a.txt; stat -c %a a.txt").withFiles(a))
		if e := c.exited(attempt(3, 1)); e.Stdout != "alpha\n644\n" {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("the runner notices an altered blob and asks for it again", func(t *testing.T) {
		path := filepath.Join(i.dir, "blobs", a.Hash)
		if err := os.Chmod(path, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("omega\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		c.start(sh(attempt(4, 1), "cat a.txt").withFiles(a))
		if e := c.exited(attempt(4, 1)); e.Cause != drover.CauseLost || !strings.Contains(e.Text, "altered") {
			t.Errorf("got %+v", e)
		}
		c.start(sh(attempt(4, 2), "cat a.txt").withFiles(a))
		c.want("Missing", func(m wire.Message) bool { return m.Missing != nil })
	})
	t.Run("bytes that do not match their hash are refused, and the channel stays open", func(t *testing.T) {
		ch := i.bulk()
		if r := ch.put(a.Hash, "gamma\n"); r.Error == "" {
			t.Errorf("got %+v", r)
		}
		if r := ch.put(a.Hash, "alpha\n"); r.Error != "" {
			t.Errorf("got %+v", r)
		}
	})
	t.Run("invalid hashes and impossible sizes are refused", func(t *testing.T) {
		for _, r := range []wire.Request{
			{Hash: "../../escape", Size: 1},
			{Hash: strings.Repeat("A", 64), Size: 1},
			{Hash: a.Hash, Size: -1},
			{Hash: a.Hash, Size: 1 << 60},
		} {
			r.Op = wire.PutBlob
			if reply := i.bulk().ask(r); reply.Error == "" {
				t.Errorf("%+v was not refused", r)
			}
		}
	})
	t.Run("paths that leave the working folder are refused", func(t *testing.T) {
		for n, path := range []string{"../x", "/tmp/x", "a/../../x", "", ".", "a//b", "a/"} {
			id := attempt(int64(100+n), 1)
			bad := a
			bad.Path = path
			c.start(sh(id, "true").withFiles(bad))
			c.refused(id)
		}
		c.start(sh(attempt(200, 1), "true").withFiles(a, a))
		c.refused(attempt(200, 1))
	})
}

func TestNoStart(t *testing.T) {
	c := newInstance(t).connect()
	for n, test := range []struct {
		name    string
		command []string
		code    int
		text    string
	}{
		{"a missing command", []string{"no-such-command"}, 127, "not found"},
		{"a missing path", []string{"./no-such-command"}, 127, "no such file"},
		{"a file that is not executable", []string{"/etc/passwd"}, 126, "permission denied"},
	} {
		t.Run(test.name, func(t *testing.T) {
			id := attempt(int64(n+1), 1)
			c.start(start{ID: id, Command: test.command})
			e := c.exited(id)
			if e.Code != test.code || e.Cause != drover.CauseNoStart || !strings.Contains(e.Text, test.text) {
				t.Errorf("got %+v", e)
			}
		})
	}
	t.Run("invalid commands and variables are refused", func(t *testing.T) {
		for n, s := range []start{
			{},
			{Command: []string{""}},
			{Command: []string{"true", "a\x00b"}},
			sh(attempt(1, 1), "true").withEnv("A=B", ""),
			sh(attempt(1, 1), "true").withEnv("", ""),
		} {
			s.ID = attempt(int64(100+n), 1)
			c.start(s)
			c.refused(s.ID)
		}
	})
}
