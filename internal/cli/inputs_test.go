package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestInputsFollowLinks(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, err := range []error{
		os.MkdirAll("real/sub", 0o755), os.WriteFile("real/sub/a", []byte("x"), 0o644), os.Symlink("sub/a", "real/b"),
		os.Symlink("real", "linked"), os.Symlink("real/sub/a", "file"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for root, want := range map[string][]string{"linked": {"linked/b", "linked/sub/a"}, "file": {"file"}, "real/sub": {"sub/a"}} {
		var got []string
		files, err := keepPath(filepath.Join(".", root), func(string) (hash string, size int64, err error) { return "", 1, nil })
		for _, f := range files {
			got = append(got, f.Path)
		}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got)\n%s", root, err, diff)
		}
	}
}
