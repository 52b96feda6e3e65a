package config

import (
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"drover"
)

// BatchFile is a valid batch, with the position of everything in its file. The paths of its inputs are absolute.
type BatchFile struct {
	Batch drover.Batch

	file string
	root *node
}

// LoadBatch reads a batch file. Errors in it are Faults.
func LoadBatch(path string) (*BatchFile, error) {
	data, dir, err := read(path)
	if err != nil {
		return nil, err
	}
	return ParseBatch(path, data, dir)
}

// ParseBatch reads a batch from data. Faults call it name; relative paths in it are relative to dir.
func ParseBatch(name string, data []byte, dir string) (*BatchFile, error) {
	d := &decoder{faults: &faults{file: name}, dir: dir}
	root := parse(data, d.faults)
	if root == nil || d.tooMany(root) {
		return nil, d.err()
	}
	var file batchFile
	d.value(root, reflect.ValueOf(&file).Elem(), field{})
	c := checker{faults: d.faults, dir: dir, root: root}
	c.batch(&file, name)
	if err := d.err(); err != nil {
		return nil, err
	}
	b := &BatchFile{Batch: drover.Batch{Name: file.Name, Notify: file.Notify.spec()}, file: name, root: root}
	for _, j := range file.Jobs {
		b.Batch.Jobs = append(b.Batch.Jobs, j.spec(func(path string) string { return resolve(dir, path) }))
	}
	return b, nil
}

// Fault is an error at a place in the file, for faults that only the caller can find: at the key of a job
// ("resources.memory"; empty for the job as a whole), or at the nearest place in the file.
func (b *BatchFile) Fault(job, key, message, hint string) error {
	f := &faults{file: b.file}
	f.add(b.job(job).at(key), message, hint)
	return f.err()
}

// CheckClouds reports which jobs name an unknown cloud.
func (b *BatchFile) CheckClouds(names []string) error {
	f := &faults{file: b.file}
	for _, j := range b.Batch.Jobs {
		if cloud := j.Placement.Cloud; cloud != "" && !slices.Contains(names, cloud) {
			f.addUnknown(b.job(j.Name).find("placement", "cloud"), "there is no cloud "+quote(cloud), cloud, names)
		}
	}
	return f.err()
}

// CheckAfter reports which jobs depend on jobs of other batches, which only a controller has.
func (b *BatchFile) CheckAfter() error {
	f := &faults{file: b.file}
	for _, j := range b.Batch.Jobs {
		for _, name := range slices.Concat(j.After, j.AfterAny) {
			if _, err := b.Batch.Job(name); err != nil {
				f.add(b.job(j.Name).find("after"), "job "+name+" is not in this batch; only a controller can wait for other batches' jobs", "submit the batch to a controller: drover submit")
			}
		}
	}
	return f.err()
}

// job returns the node of a job; the whole file if it is not there.
func (b *BatchFile) job(name string) *node {
	for i, j := range b.Batch.Jobs {
		if j.Name == name {
			return b.root.find("jobs", strconv.Itoa(i))
		}
	}
	return b.root
}

// nameOf makes a batch's name from its file's.
func nameOf(file string) string {
	base := filepath.Base(file)
	return strings.TrimSuffix(base, filepath.Ext(base))
}
