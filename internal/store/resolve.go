package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"drover"
)

// Resolve returns the one absolute path of a state, free of links. A missing file resolves to where its folder leads.
// KindInvalid: the path is a link that leads to nothing, perhaps because a disk is missing.
func Resolve(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	whole, err := filepath.EvalSymlinks(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return whole, err
	}
	switch info, err := os.Lstat(path); {
	case err == nil && info.Mode()&fs.ModeSymlink == 0: // somebody has created it meanwhile
		return filepath.EvalSymlinks(path)
	case err == nil:
		return "", drover.Errorf(drover.KindInvalid, "%s is a link to a missing file", path).WithHint("restore its target, or remove the link")
	}
	folder, err := Resolve(filepath.Dir(path))
	return filepath.Join(folder, filepath.Base(path)), err
}
