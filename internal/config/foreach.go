package config

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/google/jsonschema-go/jsonschema"

	"drover"
)

// foreach is the files that an array's elements are for, written as one or more patterns. A submission lists the files
// themselves.
type foreach []eachFile

type eachFile struct {
	name string // its name in the working folder: the path from the folder of the pattern's first wildcard
	path string // its path; empty in a submission
}

func (f *foreach) decode(d *decoder, n *node) {
	var patterns nameList
	patterns.decode(d, n)
	if n.shape == list && len(n.items) == 0 {
		d.addf(n, "foreach lists no files")
	}
	seen := map[string]string{} // the paths by name
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
			case !utf8.ValidString(file.name):
				d.add(at, fmt.Sprintf("the file name %s is not UTF-8 text", quote(file.name)), "rename the file, or list it in inputs")
				return
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

// matches returns the files that match a pattern, in no order, and records what is wrong with it.
func (d *decoder) matches(at *node, pattern string) (files []eachFile, ok bool) {
	if d.elsewhere {
		return []eachFile{{name: pattern}}, true
	}
	if pattern == "" || !doublestar.ValidatePattern(pattern) {
		d.addf(at, "%s is not a valid pattern", quote(pattern))
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

// foreach checks that an array with files has no other source of elements, and that the files do not collide with its
// other inputs.
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
