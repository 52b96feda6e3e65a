package config

import (
	"encoding/json"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"drover"
)

// MaxSubmission is the maximum size of a submission in bytes.
const MaxSubmission = 8 << 20

// submissionFile is a batch in the form that is submitted over a network: a batch file and the content of its inputs.
type submissionFile struct {
	Name string         `yaml:"name,required" doc:"names the batch and the results folder"`
	Jobs []submittedJob `yaml:"jobs,required" doc:"what to run"`

	Notify *notifyFile `yaml:"notify" doc:"post messages about the batch to a URL"`
}

// submittedJob is a job of a submission.
type submittedJob struct {
	jobFile
	Files []fileEntry `yaml:"files" doc:"the files at the inputs' paths; their contents are uploaded first, by hash"`
}

// fileEntry is one file of a job's inputs.
type fileEntry struct {
	Path string `yaml:"path,required" doc:"its path in the working folder, under its input's name"`
	Mode uint32 `yaml:"mode,required" doc:"permission bits, in decimal"`
	Size int64  `yaml:"size,required" min:"0"`
	Hash string `yaml:"hash,required" doc:"SHA-256 of its contents, in hex"`
}

// ParseSubmission parses a submitted batch, as YAML or JSON, in the format of batch files, with two differences: it
// must have a name, and its inputs' contents are listed in files instead of read here. Faults call it name.
func ParseSubmission(name string, data []byte) (drover.Batch, error) {
	d := &decoder{faults: &faults{file: name}, elsewhere: true}
	root := parseEither(data, d.faults)
	if root == nil || d.tooMany(root) {
		return drover.Batch{}, d.err()
	}
	var file submissionFile
	d.value(root, reflect.ValueOf(&file).Elem(), field{})
	plain := batchFile{Name: file.Name, Notify: file.Notify}
	for _, j := range file.Jobs {
		plain.Jobs = append(plain.Jobs, j.jobFile)
	}
	c := checker{faults: d.faults, root: root, elsewhere: true}
	c.batch(&plain, "")
	for i, j := range file.Jobs {
		c.files(j, c.at(i))
	}
	if err := d.err(); err != nil {
		return drover.Batch{}, err
	}
	b := drover.Batch{Name: file.Name, Notify: file.Notify.spec()}
	for _, j := range file.Jobs {
		b.Jobs = append(b.Jobs, j.spec())
	}
	return b, nil
}

// spec converts the job to package drover's type. Its paths stay as they are.
func (j submittedJob) spec() drover.JobSpec {
	s := j.jobFile.spec(func(path string) string { return path })
	for _, f := range j.Files {
		s.Files = append(s.Files, drover.File(f))
	}
	return s
}

// SubmissionSchema returns the JSON Schema of submissions.
func SubmissionSchema() ([]byte, error) {
	s := schemaOf(reflect.TypeFor[submissionFile]())
	s.Schema, s.Title = dialect, "a batch of Drover jobs, as it is submitted"
	return json.MarshalIndent(s, "", "  ")
}

// files checks that the contents of a job's inputs are listed, and would be placed under their names.
func (c *checker) files(j submittedJob, n *node) {
	under := map[string]bool{}
	for _, in := range j.Inputs {
		if in.Path != "" {
			under[path.Base(in.Path)] = true
		}
	}
	for _, f := range j.Foreach {
		under[firstOf(f.name)] = true
	}
	list := n.get("files")
	switch {
	case len(under) > 0 && list == nil:
		c.add(n.find("inputs"), "some inputs are paths, but their files are not listed", "list them in files: [{path, mode, size, hash}], and upload the files first")
	case len(under) == 0 && list != nil:
		c.addf(list, "files are listed, but no input is a path")
	}
	taken := map[string]bool{}
	for i, f := range j.Files {
		at := n.find("files", strconv.Itoa(i))
		if at.shape == mapping && len(under) > 0 {
			c.file(f, at, under, taken)
		}
	}
	c.apart(taken, list)
	for _, f := range j.Foreach {
		if list != nil && !taken[f.name] {
			c.addf(n.find("foreach"), "%s is not listed in files", quote(f.name))
		}
	}
}

// firstOf returns the first component of a path.
func firstOf(file string) string {
	first, _, _ := strings.Cut(file, "/")
	return first
}

// apart checks that no file has the name of a folder with another file in it.
func (c *checker) apart(taken map[string]bool, at *node) {
	// With a separator below any character, the content of a folder sorts directly after its name.
	var paths []string
	for name := range taken {
		paths = append(paths, strings.ReplaceAll(name, "/", "\x00"))
	}
	slices.Sort(paths)
	for i := 1; i < len(paths); i++ {
		if dir := paths[i-1]; strings.HasPrefix(paths[i], dir+"\x00") {
			slashed := strings.NewReplacer("\x00", "/")
			c.addf(at, "%s is listed as a file and as a folder with %s in it", quote(slashed.Replace(dir)), quote(slashed.Replace(paths[i])))
		}
	}
}

// maxPath is the longest path that Linux accepts.
const maxPath = 4095

// file checks one file.
func (c *checker) file(f fileEntry, at *node, under, taken map[string]bool) {
	first := firstOf(f.Path)
	switch {
	case f.Path == "":
		return // a missing name was already reported
	case len(f.Path) > maxPath:
		c.addf(at.find("path"), "the path %s is longer than %d bytes", quote(f.Path), maxPath)
	case path.Clean(f.Path) != f.Path || path.IsAbs(f.Path) || first == ".." || strings.ContainsAny(f.Path, "\\\x00"):
		c.addf(at.find("path"), "%s is not a plain path within the working folder", quote(f.Path))
	case !under[first]:
		c.addf(at.find("path"), "%s is not under the name of an input", quote(f.Path))
	case taken[f.Path]:
		c.addf(at.find("path"), "%s is listed twice", quote(f.Path))
	default:
		taken[f.Path] = true
	}
	if f.Mode > 0o777 {
		c.add(at.find("mode"), fmt.Sprintf("%d has bits other than permission bits", f.Mode), "write the mode in decimal: 420 for rw-r--r--, 493 for rwxr-xr-x")
	}
	if !hash.MatchString(f.Hash) && at.get("hash") != nil {
		c.addf(at.find("hash"), "%s is not a SHA-256 hash in hex", quote(f.Hash))
	}
}
