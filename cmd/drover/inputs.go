package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"drover"
	"drover/internal/blob"
)

// keepInputs copies what the batch's inputs hold, so that a job gets what was there when it was submitted, and writes down in each job what
// is to be laid in its working folder.
func keepInputs(ctx context.Context, batch *drover.Batch, to *blob.Dir) error {
	kept := map[string][]drover.File{}
	for i := range batch.Jobs {
		job := &batch.Jobs[i]
		for _, in := range job.Inputs {
			if in.Path == "" {
				continue
			}
			if _, ok := kept[in.Path]; !ok {
				files, err := keepPath(ctx, in.Path, to)
				if err != nil {
					return fmt.Errorf("input %s of job %s: %w", in.Path, job.Name, err)
				}
				kept[in.Path] = files
			}
			job.Files = append(job.Files, kept[in.Path]...)
		}
	}
	return nil
}

// keepPath keeps a file, or all files under a folder, under the base name of the path.
func keepPath(ctx context.Context, root string, to *blob.Dir) (files []drover.File, err error) {
	base := filepath.Base(root)
	err = filepath.WalkDir(root, func(name string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Stat(name)
		if err != nil || !info.Mode().IsRegular() {
			return err
		}
		within, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		hash, size, err := to.PutFile(ctx, name)
		files = append(files, drover.File{
			Path: path.Join(base, filepath.ToSlash(within)), Mode: uint32(info.Mode().Perm()), Size: size, Hash: hash,
		})
		return err
	})
	return files, err
}
