package config

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"drover"
)

// The limits of one batch. A command and its environment travel in one message, which has its own limit.
const (
	maxJobs    = 10_000
	maxCommand = 256 << 10
)

// tooMany reports a batch with too many jobs, before they are decoded.
func (f *faults) tooMany(root *node) bool {
	jobs := root.get("jobs")
	if jobs == nil || len(jobs.items) <= maxJobs {
		return false
	}
	f.addf(jobs, "a batch must have 1 to %d jobs, not %d", maxJobs, len(jobs.items))
	return true
}

// checker checks a batch's values against each other.
type checker struct {
	*faults
	dir       string
	root      *node
	elsewhere bool // the submitter's files are on another host
}

// batch checks the batch, and names it after its file if it has no name of its own.
func (c *checker) batch(b *batchFile, file string) {
	switch {
	case b.Name != "":
		if err := CheckName(b.Name); err != nil {
			c.addErr(c.root.find("name"), err)
		}
	case CheckName(nameOf(file)) == nil:
		b.Name = nameOf(file)
	case c.elsewhere && c.root.get("name") == nil: // already reported
	default:
		c.add(c.root, "the batch has no name, and its file name is not a valid batch name", "write name: NAME")
	}
	if b.Notify != nil && b.Notify.URL != "" {
		if err := CheckNotify(b.Notify.URL); err != nil {
			c.addErr(c.root.find("notify", "url"), err)
		}
	}
	jobs := c.root.find("jobs")
	if jobs.shape != list {
		return
	}
	if len(b.Jobs) == 0 {
		c.addf(jobs, "a batch must have 1 to %d jobs, not 0", maxJobs)
		return
	}
	c.names(b.Jobs)
	for i, j := range b.Jobs {
		c.job(j, jobs.items[i])
	}
	c.cycles(b.Jobs)
}

// at returns the node of a key of job i.
func (c *checker) at(i int, path ...string) *node {
	return c.root.find(append([]string{"jobs", strconv.Itoa(i)}, path...)...)
}

// job checks one job on its own.
func (c *checker) job(j jobFile, n *node) {
	c.program(j, n)
	c.gang(j, n)
	c.maxRunning(j, n)
	c.foreach(j, n)
	c.expected(j, n)
	c.resources(j.Resources, n.find("resources"))
	c.environment(j, n)
	c.inputs(j.Inputs, n.find("inputs"))
	c.outputs(j.Outputs, n.find("outputs"))
	c.labels(j.Labels, n.find("labels"))
	if r := n.get("retry"); r != nil && r.shape == mapping && r.get("exit_codes") != nil && len(j.Retry.ExitCodes) == 0 {
		c.addf(r.find("exit_codes"), "retry.exit_codes is empty")
	}
}

// program checks that there is a program to run.
func (c *checker) program(j jobFile, n *node) {
	said := func(key string) bool { return n.get(key) != nil && n.get(key).shape != absent }
	if n.shape == mapping && !said("command") && !said("image") && !c.misspelt(n, "command") {
		c.addf(n, "command is missing")
	}
	if !said("image") || n.get("image").shape != scalar {
		return
	}
	if err := drover.CheckImage(j.Image); err != nil {
		c.addErr(n.get("image"), err)
	}
}

// gang checks that gangs divide the array.
func (c *checker) gang(j jobFile, n *node) {
	size := drover.Array(j.Array).Size()
	switch said := n.get("array") != nil; {
	case j.Gang == 0:
	case len(j.Foreach) > 0:
		c.add(n.find("gang"), "a job with foreach cannot have gangs: its elements are independent", "write array instead, or leave out gang")
	case !said:
		c.add(n.find("gang"), "gang requires an array", fmt.Sprintf("write array: %d for one gang", j.Gang))
	case j.Array.Only != "":
		c.add(n.find("gang"), "gangs need consecutive elements, but the array has gaps", "write a count or one range")
	case j.Array.Set && size%j.Gang != 0:
		c.add(n.find("gang"), fmt.Sprintf("an array of %d cannot be divided into gangs of %d", size, j.Gang), fmt.Sprintf("write array: %d, or choose another gang size", (size/j.Gang+1)*j.Gang))
	}
}

// maxRunning checks that a job with max_running is an array.
func (c *checker) maxRunning(j jobFile, n *node) {
	switch {
	case j.MaxRunning == 0:
	case n.get("array") == nil && len(j.Foreach) == 0:
		c.add(n.find("max_running"), "max_running requires an array", "write array: N, or leave out max_running")
	case j.Gang > 0:
		c.add(n.find("max_running"), "an array with gangs cannot have max_running", "leave out gang or max_running")
	}
}

// expected checks that a job may run as long as its expected run time.
func (c *checker) expected(j jobFile, n *node) {
	switch said := n.find("expected"); {
	case j.Expected == 0 && isNothing(said):
		c.add(said, "expected must be greater than 0", "leave it out if it is not known")
	case j.Timeout > 0 && j.Expected > j.Timeout:
		c.add(said, fmt.Sprintf("expected is longer than timeout, %v, after which the job is stopped", j.Timeout), "increase timeout, or reduce expected")
	}
}

// isNothing reports whether a time is written as 0.
func isNothing(n *node) bool {
	d, err := ParseDuration(n.text)
	return n.shape == scalar && err == nil && d == 0
}

// maxAmount is the most memory or disk that a job may request. No cloud has that much, and sums over many such jobs do
// not overflow.
const maxAmount = 1 << 20 * drover.GiB

// resources rejects implausible amounts.
func (c *checker) resources(r resources, n *node) {
	if r.CPU <= 0 {
		c.addf(n.find("vcpus"), "vcpus must be greater than 0")
	}
	for key, size := range map[string]drover.Bytes{"memory": r.Memory, "disk": r.Disk} {
		if size > 0 && size < drover.MiB {
			c.add(n.find(key), fmt.Sprintf("%s of %d bytes is too small", key, int64(size)), "the minimum is 1Mi")
		}
		if size > maxAmount {
			c.addf(n.find(key), "%s is too large: a job may request up to %s", key, maxAmount.Rounded())
		}
	}
}

// environment checks the variables, and that the command and its variables are not too long.
func (c *checker) environment(j jobFile, n *node) {
	size := 0
	for _, arg := range j.Command {
		size += len(arg)
		if strings.ContainsRune(arg, 0) {
			c.addf(n.find("command"), "an argument contains a NUL byte")
		}
	}
	for _, e := range n.find("env").entries {
		name := e.key.text
		value, ok := j.Env[name]
		size += len(name) + len(value)
		switch {
		case !ok:
		case strings.HasPrefix(name, "DROVER_"):
			c.addf(e.key, "%s cannot be set: Drover reserves names that begin with DROVER_", name)
		case !envName.MatchString(name):
			c.addf(e.key, "%s is not a valid variable name", quote(name))
		case strings.ContainsRune(value, 0):
			c.addf(e.value, "the value of %s contains a NUL byte", name)
		}
	}
	if size > maxCommand {
		c.add(n.find("command"), "the command and the environment together are longer than 256 KiB", "put the data in a file and list it in inputs")
	}
}

// inputs checks that each input has one form, exists, and has its own place in the working folder.
func (c *checker) inputs(inputs []input, n *node) {
	taken := map[string]bool{}
	for i, in := range inputs {
		at := n.find(strconv.Itoa(i))
		if (in.Path == "") == (in.From == "") {
			if at.shape == mapping {
				c.add(at, "an input must be either a path or another job's outputs", "write {path: FILE} or {from: JOB}")
			}
			continue
		}
		name := in.From
		if in.Path != "" {
			name = c.path(in.Path, at.find("path"))
		}
		if taken[name] && name != "" {
			c.addf(at, "two inputs would have the same name, %s", quote(name))
		}
		taken[name] = true
	}
}

// path checks that an input is an existing file or folder, and returns its name in the working folder.
func (c *checker) path(text string, at *node) string {
	if c.elsewhere {
		return c.pathElsewhere(text, at)
	}
	full := resolve(c.dir, text)
	name := filepath.Base(full)
	info, err := os.Stat(full)
	switch {
	case err != nil:
		c.add(at, fmt.Sprintf("input %s: %v", quote(text), reason(err)), "the path was resolved to "+full)
	case !info.IsDir() && !info.Mode().IsRegular():
		c.addf(at, "input %s is neither a file nor a folder", quote(text))
	case name == "/":
		c.addf(at, "the root folder cannot be an input")
	}
	return name
}

// pathElsewhere checks that an input may be the path of a file or folder, and returns its name in the working folder.
func (c *checker) pathElsewhere(text string, at *node) string {
	name := path.Base(text)
	if name == "/" || name == "." || name == ".." {
		c.addf(at, "input %s does not end in the name of a file or folder", quote(text))
	}
	return name
}

// maxPattern is the longest path on Linux.
const maxPattern = 4095

// outputs checks that patterns are valid and stay within the working folder.
func (c *checker) outputs(outputs []output, n *node) {
	for i, out := range outputs {
		at, p := n.find(strconv.Itoa(i)), out.Glob
		if at.shape == mapping {
			if at.get("glob") == nil {
				continue // already reported
			}
			at = at.find("glob")
		}
		switch {
		case p == "" || strings.ContainsRune(p, 0) || !doublestar.ValidatePattern(p):
			c.addf(at, "%s is not a valid pattern", quote(p))
		case len(p) > maxPattern:
			c.addf(at, "the pattern is %d bytes long, but no path is longer than %d", len(p), maxPattern)
		case drover.Alternatives(p) > drover.MaxAlternatives:
			c.add(at, fmt.Sprintf("the braces in %s expand to more than %d patterns", quote(p), drover.MaxAlternatives), "write them as separate patterns")
		case path.IsAbs(p) || outside(p):
			c.add(at, "outputs must be in the job's working folder; "+quote(p)+" is not", "write a pattern relative to that folder, such as results/*.csv")
		}
	}
}

// outside reports whether a pattern leaves its folder; braces can hide a "..".
func outside(pattern string) bool {
	steps := strings.FieldsFunc(pattern, func(r rune) bool { return strings.ContainsRune("/{},", r) })
	return slices.Contains(steps, "..")
}

// A job's labels are shown with every element of its array, and the controller keeps them in memory.
const (
	maxLabels     = 64
	maxLabelBytes = 4 << 10 // total of their names and values
)

func (c *checker) labels(labels map[string]string, n *node) {
	if len(n.entries) > maxLabels {
		c.add(n, fmt.Sprintf("a job may have at most %d labels, not %d", maxLabels, len(n.entries)), "put the data in a file and list it in inputs")
		return
	}
	size := 0
	for name, value := range labels {
		size += len(name) + len(value)
	}
	if size > maxLabelBytes {
		c.add(n, fmt.Sprintf("a job's labels may total at most %d bytes, not %d", maxLabelBytes, size), "put the data in a file and list it in inputs")
		return
	}
	for _, e := range n.entries {
		value, ok := labels[e.key.text]
		switch {
		case !ok:
		case !labelKey.MatchString(e.key.text):
			c.addf(e.key, "%s is not a valid label name", quote(e.key.text))
		case len(value) > 256 || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' }):
			c.addf(e.value, "the value of a label must be one line of at most 256 bytes")
		}
	}
}
