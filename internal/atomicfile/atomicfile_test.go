package atomicfile

import (
	"os"
	"path/filepath"
	"testing"
)

func TestWrite(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "secret")
	if err := os.WriteFile(path, []byte("a longer old content"), 0o644); err != nil {
		t.Fatal(err)
	}
	for content, write := range map[string]func(string, []byte) error{"new": Write, "durable": WriteDurably} {
		t.Run(content+" content replaces the old and only its user may read it", func(t *testing.T) {
			if err := write(path, []byte(content)); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(path)
			if err != nil || string(got) != content {
				t.Errorf("%q, %v", got, err)
			}
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%v, %v", info.Mode(), err)
			}
		})
	}
	t.Run("a value is written as JSON, or refused if it has no JSON form", func(t *testing.T) {
		if err := WriteJSON(path, []int{1, 2}); err != nil {
			t.Fatal(err)
		}
		if err := WriteJSON(path, func() {}); err == nil {
			t.Error("a function was accepted as JSON")
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != "[1,2]" {
			t.Errorf("%q, %v", got, err)
		}
	})
	t.Run("a failed write leaves no file behind", func(t *testing.T) {
		if err := os.Mkdir(filepath.Join(folder, "folder"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := Write(filepath.Join(folder, "folder"), []byte("x")); err == nil {
			t.Error("a file replaced a folder")
		}
		if left, err := os.ReadDir(folder); err != nil || len(left) != 2 {
			t.Errorf("%v, %v", left, err)
		}
	})
}
