package config

import (
	"cmp"
	"errors"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"drover"
)

// batchFile is a batch in its written form.
type batchFile struct {
	Name string    `yaml:"name" doc:"names the results folder; default: the file's name"`
	Jobs []jobFile `yaml:"jobs,required" doc:"what to run"`

	Notify *notifyFile `yaml:"notify" doc:"post messages about the batch to a URL"`
}

// notifyFile is, in its written form, who is notified, and when.
type notifyFile struct {
	URL string     `yaml:"url,required" doc:"the https:// URL of Slack, ntfy, or your own program, which receives JSON"`
	On  []notifyOn `yaml:"on" doc:"failed: when the first job fails; final: when all jobs are final; default: final"`
}

// notifyOn is an occasion for a notification.
type notifyOn string

func (o *notifyOn) decodeWord(d *decoder, n *node) {
	if *o = notifyOn(n.text); *o != drover.NotifyFailed && *o != drover.NotifyFinal {
		d.addUnknown(n, quote(n.text)+" is not a notification event", n.text, []string{drover.NotifyFailed, drover.NotifyFinal})
	}
}

func (notifyOn) schema() *jsonschema.Schema {
	return &jsonschema.Schema{Enum: []any{drover.NotifyFailed, drover.NotifyFinal}}
}

// spec converts it to package drover's type.
func (y *notifyFile) spec() *drover.Notify {
	if y == nil {
		return nil
	}
	n := &drover.Notify{URL: y.URL}
	for _, on := range y.On {
		n.On = append(n.On, string(on))
	}
	if len(n.On) == 0 {
		n.On = []string{drover.NotifyFinal}
	}
	return n
}

// CheckNotify returns why messages cannot be posted to a URL.
func CheckNotify(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || len(text) > 2000 {
		return drover.Errorf(drover.KindInvalid, "%s is not a valid notification URL", quote(text)).WithHint("write https://HOST/PATH")
	}
	return nil
}

// jobFile is a job in its written form.
type jobFile struct {
	Name       string            `yaml:"name,required" doc:"unique in the batch; names the results folder"`
	Array      array             `yaml:"array" doc:"a count (20 means DROVER_ARRAY_INDEX 0 to 19), a range (1-20) or a list (1,3,5-9)"`
	Foreach    foreach           `yaml:"foreach" doc:"instead of array: one element per file that matches the pattern, or any pattern in a list; each element gets only its own file, named by DROVER_FILE"`
	MaxRunning int               `yaml:"max_running" min:"1" max:"1000000" doc:"how many elements of an array may run at once; default: as many as fit"`
	Gang       int               `yaml:"gang" min:"2" max:"1000" doc:"this many consecutive elements of the array start together or not at all; DROVER_GANG is the gang's index, DROVER_GANG_INDEX the index in the gang, DROVER_GANG_ADDRESSES where its elements run"`
	Command    command           `yaml:"command" doc:"the program and its arguments; optional if the image has its own"`
	Image      string            `yaml:"image" doc:"the container image to run command in; default: directly on the instance"`
	Resources  resources         `yaml:"resources" doc:"what the job, or each element of an array, needs"`
	Placement  placement         `yaml:"placement" doc:"where it may run"`
	MaxPrice   drover.Money      `yaml:"max_price" doc:"the maximum hourly price of its instance; default: no limit"`
	Env        map[string]string `yaml:"env" doc:"environment variables"`
	Inputs     []input           `yaml:"inputs" doc:"files to copy into the working folder before the job starts"`
	Outputs    []output          `yaml:"outputs" doc:"patterns for the files to fetch when the job ends, even if it fails"`
	After      after             `yaml:"after" doc:"jobs that must succeed first; {any: JOB}: jobs that must end first, even if they fail; a number is the ID of another batch's job, as listed by drover jobs"`
	Spot       drover.SpotPolicy `yaml:"spot" doc:"whether to use interruptible instances"`
	Attempts   int               `yaml:"attempts" min:"1" max:"100" doc:"the job fails once this many attempts have been lost with their instances"`
	Retry      retry             `yaml:"retry" doc:"which exit codes to retry; default: none"`
	Timeout    time.Duration     `yaml:"timeout" doc:"stop it after this time; 0: never"`
	Expected   time.Duration     `yaml:"expected" doc:"how long one attempt will probably run, at most timeout; helps decide what to rent, but never stops the job; default: unknown"`
	MaxWait    time.Duration     `yaml:"max_wait" doc:"how long it may wait for room on a running instance, beyond the time a new instance takes to boot; 0: no longer than a new instance takes to boot"`
	Priority   int               `yaml:"priority" min:"0" max:"1000" doc:"higher goes first; 0: do not start it"`
	Labels     map[string]string `yaml:"labels" doc:"for searches, budgets and shares"`
}

// Default sets the defaults of a job.
func (j *jobFile) Default() {
	spec := DefaultJob()
	*j = jobFile{
		Resources: resources(spec.Resources),
		Spot:      spec.Spot,
		Attempts:  spec.Attempts,
		Priority:  spec.Priority,
	}
}

// refine requires a command, or an image that may have one.
func (jobFile) refine(s *jsonschema.Schema) {
	s.AnyOf = []*jsonschema.Schema{{Required: []string{"command"}}, {Required: []string{"image"}}}
}

// DefaultJob returns a job with only defaults, without name and command.
func DefaultJob() drover.JobSpec {
	return drover.JobSpec{
		Resources: drover.Resources{CPU: drover.DefaultCPU, Memory: drover.DefaultMemory, Disk: drover.DefaultDisk},
		Spot:      drover.SpotPrefer,
		Attempts:  drover.DefaultAttempts,
		Priority:  drover.DefaultPriority,
	}
}

type resources struct {
	CPU    drover.MilliCPU `yaml:"vcpus" doc:"fractions are allowed"`
	Memory drover.Bytes    `yaml:"memory"`
	Disk   drover.Bytes    `yaml:"disk"`
	GPUs   int             `yaml:"gpus" min:"0" max:"1000"`
	Arch   drover.Arch     `yaml:"arch" doc:"default: any"`
}

type placement struct {
	Cloud string `yaml:"cloud" doc:"a cloud's name in the configuration"`
	Zone  string `yaml:"zone"`
	Type  string `yaml:"type" doc:"an instance type"`
}

type input struct {
	Path string `yaml:"path" doc:"a local file or folder, which keeps its name"`
	From string `yaml:"from" doc:"a job whose outputs appear in a folder named after it"`
}

// instead is the hint for a path that is written alone.
func (input) instead(text string) string { return "write {path: " + text + "}" }

// output is a pattern, written alone or as the glob of a mapping.
type output outputFile

type outputFile struct {
	Glob     string `yaml:"glob,required" doc:"a glob pattern for files"`
	Required bool   `yaml:"required" doc:"the job fails if no file matches"`
}

func (o *output) decode(d *decoder, n *node) {
	if n.shape == scalar {
		o.Glob = n.text
		return
	}
	d.structure(n, reflect.ValueOf((*outputFile)(o)).Elem())
}

func (output) schema() *jsonschema.Schema {
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "string"}, schemaOf(reflect.TypeFor[outputFile]())}}
}

// retry is how often a job is retried, written alone or as the times of a mapping.
type retry retryFile

type retryFile struct {
	ExitCodes []int         `yaml:"exit_codes" min:"1" max:"255" doc:"default: all except 0"`
	Times     int           `yaml:"times,required" min:"1" max:"100"`
	Delay     time.Duration `yaml:"delay" doc:"the delay before the first retry; it doubles with each retry, up to an hour; default: 10s"`
}

// Default sets the delay.
func (r *retryFile) Default() { r.Delay = drover.DefaultRetryDelay }

func (r *retry) decode(d *decoder, n *node) {
	if n.shape != scalar {
		d.structure(n, reflect.ValueOf((*retryFile)(r)).Elem())
		return
	}
	(*retryFile)(r).Default()
	times := d.fieldsOf(reflect.TypeFor[retryFile]())[1]
	d.integer(n, reflect.ValueOf(&r.Times).Elem(), times)
}

func (retry) schema() *jsonschema.Schema {
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "integer", Minimum: new(1.0), Maximum: new(100.0)}, schemaOf(reflect.TypeFor[retryFile]())}}
}

// spec converts the job to package drover's type, with the paths of its inputs as place returns them.
func (j jobFile) spec(place func(path string) string) drover.JobSpec {
	s := drover.JobSpec{
		Name:       j.Name,
		Array:      drover.Array(j.Array),
		MaxRunning: j.MaxRunning,
		Gang:       j.Gang,
		Command:    j.Command,
		Image:      j.Image,
		Resources:  drover.Resources(j.Resources),
		Placement:  drover.Placement{Cloud: j.Placement.Cloud, Zone: j.Placement.Zone, Type: j.Placement.Type, MaxPrice: j.MaxPrice},
		Env:        j.Env,
		Spot:       j.Spot,
		Attempts:   j.Attempts,
		Retry:      drover.Retry(j.Retry),
		Timeout:    j.Timeout,
		Expected:   j.Expected,
		MaxWait:    j.MaxWait,
		Priority:   j.Priority,
		Labels:     j.Labels,
	}
	if n := len(j.Foreach); n > 0 {
		s.Array = drover.Array{Last: n - 1, Set: true}
	}
	for _, f := range j.Foreach {
		s.Foreach, s.ForeachPaths = append(s.Foreach, f.name), append(s.ForeachPaths, f.path)
	}
	for _, in := range j.Inputs {
		if in.Path != "" {
			in.Path = place(in.Path)
		}
		s.Inputs = append(s.Inputs, drover.Input(in))
	}
	for _, out := range j.Outputs {
		s.Outputs = append(s.Outputs, out.Glob)
		if out.Required {
			s.Required = append(s.Required, out.Glob)
		}
	}
	s.After, s.AfterAny = j.waitsFor()
	return s
}

// waitsFor returns the jobs that must succeed before this one, and those that must only be final; no name twice. A job
// whose outputs it uses must succeed, unless the file says that its end is enough.
func (j jobFile) waitsFor() (succeed, end []string) {
	seen := map[string]bool{}
	add := func(to *[]string, job string) {
		if job != "" && !seen[job] {
			seen[job] = true
			*to = append(*to, job)
		}
	}
	for _, a := range j.After {
		if a.any {
			add(&end, a.job)
		}
	}
	for _, a := range j.After {
		if !a.any {
			add(&succeed, a.job)
		}
	}
	for _, in := range j.Inputs {
		add(&succeed, in.From)
	}
	return succeed, end
}

// array is the indices of an array, in the notation of ParseArray.
type array drover.Array

func (a *array) decode(d *decoder, n *node) {
	text := n.text
	if n.shape == list {
		var items nameList
		items.decode(d, n)
		text = strings.Join(items, ",")
		if _, err := index(text); err == nil { // a single index, not a count
			text += "-" + text
		}
	} else if !d.want(n, scalar) {
		return
	}
	parsed, err := ParseArray(text)
	if err != nil {
		d.addErr(n, err)
		return
	}
	*a = array(parsed)
}

func (array) schema() *jsonschema.Schema {
	return &jsonschema.Schema{Types: []string{"integer", "string", "array"}, Minimum: new(1.0), Maximum: new(float64(drover.MaxArray)), Pattern: "^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*$"}
}

// maxIndex limits the indices of an array; drover.MaxArray limits their number.
const maxIndex = 1_000_000_000

// maxRuns limits the separate indices and ranges in a list.
const maxRuns = 10_000

// ParseArray reads a count ("20": indices 0 to 19), a range ("1-20"), or a list of indices and ranges ("1,3,5-9").
func ParseArray(text string) (drover.Array, error) {
	runs, err := parseRuns(text)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return drover.Array{}, drover.Errorf(drover.KindInvalid, "the array %s goes beyond %d, the highest possible index", text, maxIndex)
	case err != nil:
		return drover.Array{}, drover.Errorf(drover.KindInvalid, "%s is not an array", quote(text)).WithHint("write a count, such as 20, a range, such as 1-20, or a list, such as 1,3,5-9")
	case len(runs) == 0:
		return drover.Array{}, drover.Errorf(drover.KindInvalid, "the array %s has no elements", text)
	}
	a := drover.Array{First: runs[0].first, Last: runs[len(runs)-1].last, Set: true}
	if len(runs) > maxRuns {
		return drover.Array{}, drover.Errorf(drover.KindInvalid, "the array has %d indices and ranges, over the limit of %d", len(runs), maxRuns)
	}
	if len(runs) > 1 {
		a.Only = joined(runs)
	}
	if a.Size() > drover.MaxArray {
		return drover.Array{}, drover.Errorf(drover.KindInvalid, "an array of %d elements is over the limit of %d", a.Size(), drover.MaxArray)
	}
	return a, nil
}

// run is consecutive indices, both ends included.
type run struct{ first, last int }

// parseRuns parses the indices of an array into separate runs; none if there are no elements.
func parseRuns(text string) (runs []run, err error) {
	if count, err := index(text); err == nil {
		runs = append(runs, run{0, count - 1})
		return runs[:min(count, 1)], nil
	}
	for part := range strings.SplitSeq(text, ",") {
		from, to, ranged := strings.Cut(part, "-")
		first, err := index(from)
		last := first
		if err == nil && ranged {
			last, err = index(to)
		}
		if err != nil {
			return nil, err
		}
		if first <= last {
			runs = append(runs, run{first, last})
		}
	}
	slices.SortFunc(runs, func(a, b run) int { return cmp.Compare(a.first, b.first) })
	merged := runs[:0]
	for _, r := range runs {
		if n := len(merged); n > 0 && r.first <= merged[n-1].last+1 {
			merged[n-1].last = max(merged[n-1].last, r.last)
		} else {
			merged = append(merged, r)
		}
	}
	return merged, nil
}

// joined writes runs as a list.
func joined(runs []run) string {
	var parts []string
	for _, r := range runs {
		part := strconv.Itoa(r.first)
		if r.last > r.first {
			part += "-" + strconv.Itoa(r.last)
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ",")
}

// index parses an array index in its plain form.
func index(text string) (int, error) {
	i, err := strconv.ParseUint(text, 10, 63)
	if err == nil && i > maxIndex {
		return 0, strconv.ErrRange
	}
	return int(i), err
}

// command is a program and its arguments. A single text is refused, since how to split it would be unclear.
type command []string

func (c *command) decode(d *decoder, n *node) {
	if n.shape == scalar {
		d.add(n, "command must be a list: the program, then each argument", commandHint(n.text))
		return
	}
	if !d.want(n, list) {
		return
	}
	for _, item := range n.items {
		if d.want(item, scalar) {
			*c = append(*c, item.text)
		}
	}
	switch {
	case len(n.items) == 0:
		d.addf(n, "command is empty")
	case len(*c) > 0 && n.items[0].shape == scalar && (*c)[0] == "":
		d.addf(n.items[0], "the program's name is empty")
	}
}

func (command) schema() *jsonschema.Schema {
	return &jsonschema.Schema{Type: "array", Items: textSchema(), MinItems: new(1)}
}

// commandHint writes a command line as a list: by its words, if it has no shell syntax.
func commandHint(text string) string {
	words := strings.Fields(text)
	if strings.ContainsAny(text, "|&;<>()$`\\\"'*?[]#~=%{}\n") || len(words) == 0 {
		return `write ["sh", "-c", ` + quote(text) + `]`
	}
	for i, w := range words {
		words[i] = strconv.Quote(w)
	}
	return "write [" + strings.Join(words, ", ") + `], or ["sh", "-c", ` + quote(text) + `]`
}

// after is the jobs to run after: one name, or a list of names, of which {any: NAME} need not succeed.
type after []afterOne

type afterOne struct {
	job string
	any bool
	at  *node
}

// afterFile is the written form of jobs that need not succeed.
type afterFile struct {
	Any nameList `yaml:"any,required" doc:"jobs that must end first, even if they fail"`
}

func (a *after) decode(d *decoder, n *node) {
	items := n.items
	if n.shape != list {
		items = []*node{n}
	}
	for _, item := range items {
		if item.shape == scalar {
			*a = append(*a, afterOne{item.text, false, item})
			continue
		}
		var f afterFile
		d.structure(item, reflect.ValueOf(&f).Elem())
		for i, name := range f.Any {
			at := item.get("any")
			if at.shape == list {
				at = at.items[i]
			}
			*a = append(*a, afterOne{name, true, at})
		}
	}
}

func (after) schema() *jsonschema.Schema {
	one := &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Types: []string{"string", "integer"}}, schemaOf(reflect.TypeFor[afterFile]())}}
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{one, {Type: "array", Items: one}}}
}

// nameList is one name, or a list of names.
type nameList []string

func (l *nameList) decode(d *decoder, n *node) {
	items := n.items
	if n.shape == scalar {
		items = []*node{n}
	} else if !d.want(n, list) {
		return
	}
	for _, item := range items {
		if d.want(item, scalar) {
			*l = append(*l, item.text)
		}
	}
}

func (nameList) schema() *jsonschema.Schema {
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "string"}, {Type: "array", Items: &jsonschema.Schema{Type: "string"}}}}
}
