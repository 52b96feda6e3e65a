package runner

import (
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/bmatcuk/doublestar/v4"
)

// sealed is a file system in which one folder cannot be read.
type sealed struct {
	fstest.MapFS
	folder string
}

func (s sealed) ReadDir(name string) ([]fs.DirEntry, error) {
	if name == s.folder {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return s.MapFS.ReadDir(name)
}

func TestAnUnreadableFolderMakesTheOutputsIncomplete(t *testing.T) {
	files := fstest.MapFS{"out/a/x.txt": {Data: []byte("1")}, "out/b/x.txt": {Data: []byte("2")}}
	for folder, whole := range map[string]bool{"out/a": false, "elsewhere": true} {
		c := &collector{}
		matches := 0
		err := doublestar.GlobWalk(watched{sealed{files, folder}, c}, "out/*/*.txt", func(string, fs.DirEntry) error {
			matches++
			return nil
		}, doublestar.WithNoFollow())
		if err != nil || matches == 0 {
			t.Fatalf("%d matches, %v", matches, err)
		}
		if (c.err == nil) != whole {
			t.Errorf("with %s unreadable: want complete outputs: %v, got %v", folder, whole, c.err)
		}
	}
}
