package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"drover"
	"drover/internal/blob"
)

// keepInputs copies the contents of the batch's inputs, so that a job gets the contents at submission, and records in
// each job which files go into its working folder.
func keepInputs(ctx context.Context, batch *drover.Batch, to *blob.Dir) error {
	return findInputs(batch, func(path string) (hash string, size int64, err error) { return to.PutFile(ctx, path) })
}

// checkInputs checks every file of the batch's inputs before anything starts.
func checkInputs(batch drover.Batch) error {
	batch.Jobs = slices.Clone(batch.Jobs)
	return findInputs(&batch, func(string) (hash string, size int64, err error) { return "", 0, nil })
}

// keeper stores the content of a file, under the file's hash.
type keeper = func(path string) (hash string, size int64, err error)

// findInputs stores every file of the batch's inputs once, and records in each job which files go into its working
// folder.
func findInputs(batch *drover.Batch, keep keeper) error {
	kept := map[string][]drover.File{}
	for i := range batch.Jobs {
		job := &batch.Jobs[i]
		for _, in := range job.Inputs {
			if in.Path == "" {
				continue
			}
			if _, ok := kept[in.Path]; !ok {
				files, err := keepPath(in.Path, keep)
				if err != nil {
					return fmt.Errorf("input %s of job %s: %w", in.Path, job.Name, err)
				}
				kept[in.Path] = files
			}
			job.Files = append(job.Files, kept[in.Path]...)
		}
		for n, path := range job.ForeachPaths {
			info, err := os.Stat(path)
			if err != nil {
				return fmt.Errorf("foreach file of job %s: %w", job.Name, err)
			}
			file, err := keepInput(path, info, job.Foreach[n], keep)
			if err != nil {
				return fmt.Errorf("foreach file %s of job %s: %w", path, job.Name, err)
			}
			job.Files = append(job.Files, file)
		}
	}
	return nil
}

// keepPath stores a file, or all files in a folder, under the base name of the path. The path itself and files in the
// folder may be links; links to other folders are refused, since they may lead anywhere.
func keepPath(root string, keep keeper) (files []drover.File, err error) {
	base := filepath.Base(root)
	info, err := statInput(root)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		file, err := keepInput(root, info, base, keep)
		return []drover.File{file}, err
	}
	within := root + string(filepath.Separator) // so that a link is followed
	err = filepath.WalkDir(within, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || name == within {
			return err
		}
		info, err := statInput(name)
		switch {
		case err != nil:
			return err
		case info.IsDir() && !entry.IsDir():
			return drover.Errorf(drover.KindInvalid, "%s is a link to a folder", name).WithHint("list that folder in inputs as well, and remove the link from this one")
		case !info.Mode().IsRegular():
			return nil
		}
		place, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		file, err := keepInput(name, info, path.Join(base, filepath.ToSlash(place)), keep)
		files = append(files, file)
		return err
	})
	return files, err
}

// statInput describes the file or folder that a name, or the link there, leads to.
func statInput(name string) (fs.FileInfo, error) {
	info, err := os.Stat(name)
	if _, link := os.Lstat(name); link == nil && errors.Is(err, fs.ErrNotExist) {
		return nil, drover.Errorf(drover.KindInvalid, "%s is a broken link", name).WithHint("fix the link, or remove it")
	}
	return info, err
}

// keepInput stores a file that goes to a place.
func keepInput(name string, info fs.FileInfo, place string, keep keeper) (drover.File, error) {
	hash, size, err := keep(name)
	return drover.File{Path: place, Mode: uint32(info.Mode().Perm()), Size: size, Hash: hash}, err
}
