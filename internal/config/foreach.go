package config

import (
	"cmp"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/google/jsonschema-go/jsonschema"

	"drover"
)

// foreach is the files that the elements of an array are for, written as the pattern, or the patterns, that they match.
// In a submission the files themselves are listed.
type foreach []eachFile

type eachFile struct {
	name string // where it is laid: from the folder on in which the pattern's first wildcard is
	path string // where it is; empty in a submission
}

func (f *foreach) decode(d *decoder, n *node) {
	var patterns nameList
	patterns.decode(d, n)
	if n.shape == list && len(n.items) == 0 {
		d.addf(n, "foreach lists no files")
	}
	seen := map[string]string{} // the paths by the names
	for i, pattern := range patterns {
		at := n
		if n.shape == list {
			at = n.items[i]
		}
		files, ok := d.matches(at, pattern)
		if !ok {
			return
		}
		for _, file := range files {
			other, known := seen[file.name]
			switch {
			case !known:
				seen[file.name] = file.path
				*f = append(*f, file)
			case other != file.path || d.elsewhere:
				d.addf(at, "two files would have the name %s", quote(file.name))
				return
			}
		}
	}
	if len(*f) > drover.MaxArray {
		d.addf(n, "an array of %d elements is over the limit of %d", len(*f), drover.MaxArray)
	}
	if !d.elsewhere {
		slices.SortFunc(*f, func(a, b eachFile) int { return cmp.Compare(a.name, b.name) })
	}
}

// matches are the files that match a pattern, in no order; what is wrong with it is noted.
func (d *decoder) matches(at *node, pattern string) (files []eachFile, ok bool) {
	if d.elsewhere {
		return []eachFile{{name: pattern}}, true
	}
	if pattern == "" || !doublestar.ValidatePattern(pattern) {
		d.addf(at, "%s is not a pattern", quote(pattern))
		return nil, false
	}
	base, rest := doublestar.SplitPattern(filepath.ToSlash(resolve(d.dir, pattern)))
	found, err := doublestar.Glob(os.DirFS(base), rest, doublestar.WithFilesOnly(), doublestar.WithFailOnIOErrors())
	switch {
	case err != nil:
		d.addf(at, "looking for %s: %v", pattern, reason(err))
		return nil, false
	case len(found) == 0:
		d.add(at, "no file matches "+quote(pattern), "the folder searched was "+base)
		return nil, false
	}
	for _, name := range found {
		files = append(files, eachFile{name, path.Join(base, name)})
	}
	return files, true
}

func (foreach) schema() *jsonschema.Schema { return nameList{}.schema() }

// foreach checks that the files of an array's elements are its only source of elements, and are laid beside its other
// inputs.
func (c *checker) foreach(j jobFile, n *node) {
	if len(j.Foreach) == 0 {
		return
	}
	if n.get("array") != nil {
		c.add(n.find("array"), "foreach creates its own array", "leave out array, or foreach")
	}
	taken := map[string]bool{}
	for _, in := range j.Inputs {
		taken[in.From] = true
		if in.Path != "" {
			taken[path.Base(filepath.ToSlash(in.Path))] = true
		}
	}
	for _, f := range j.Foreach {
		if name := firstOf(f.name); taken[name] {
			c.addf(n.find("foreach"), "a file and an input would have the same name, %s", quote(name))
			return
		}
	}
}
