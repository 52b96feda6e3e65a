package control

import (
	"context"
	"io"
	"maps"
	"net"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"drover"
	"drover/internal/blob"
	"drover/internal/engine"
	"drover/internal/logkey"
	"drover/internal/wire"
)

// streams are an attempt's two output streams, with their names in results.
var streams = map[drover.Stream]string{drover.Stdout: blob.Stdout, drover.Stderr: blob.Stderr}

// output returns the end of one of an attempt's streams, and the stream's total length.
func output(x drover.Exit, stream drover.Stream) (tail string, size int64) {
	if stream == drover.Stderr {
		return x.Stderr, x.StderrLen
	}
	return x.Stdout, x.StdoutLen
}

// start starts an attempt on its instance, and uploads missing inputs.
func (c *Controller) start(ctx context.Context, effect int64, f engine.Start) engine.Body {
	late, err := c.tryStart(ctx, f)
	if err != nil {
		return engine.StartFailed{Effect: effect, Attempt: f.Attempt, Err: drover.AsError(err, drover.KindTransient), Late: late}
	}
	return engine.Started{Effect: effect, Attempt: f.Attempt}
}

// tryStart also reports whether a failed start missed its deadline.
func (c *Controller) tryStart(ctx context.Context, f engine.Start) (late bool, err error) {
	l := c.link(f.Instance)
	if l == nil {
		return false, errNotConnected
	}
	spec, err := c.spec(ctx, f.Attempt.Job.Number)
	if err != nil {
		return false, err
	}
	files, err := c.inputs(ctx, spec, f.Attempt.Job.Index)
	if err != nil {
		return false, err
	}
	env := c.environment(spec, f, l.name)
	if spec.Gang > 0 {
		var gang []string
		if err := c.Query(ctx, func(e *engine.Engine) { gang = e.GangAddresses(f.Attempt.Job) }); err != nil {
			return false, err
		}
		env["DROVER_GANG_ADDRESSES"] = hosts(gang)
	}
	limit := startTime(files.list)
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err = l.conn.Start(within, wire.Start{
		ID:      f.Attempt,
		Command: spec.Command,
		Image:   spec.Image,
		Env:     env,
		Files:   files.list,
		Outputs: spec.Outputs,
		Timeout: f.Timeout,
		Grace:   f.Grace,
		Limits:  f.Limits,
		Store:   c.state.Nonce,
		Proof:   c.cfg.Key.AttemptProof(c.state.Nonce, l.name, f.Attempt),
	}, files.open)
	if err != nil && within.Err() != nil && ctx.Err() == nil && drover.AsError(err, drover.KindTransient).Kind == drover.KindTransient {
		return true, drover.Errorf(drover.KindTransient, "starting the attempt took longer than %v: %v", limit, err)
	}
	return false, err
}

const (
	startTimeout = 10 * time.Minute // for a start, besides the time for its inputs
	slowestInput = drover.MiB       // assumed minimum of input bytes received per second
)

// startTime returns how long a start with these inputs may take.
func startTime(files []drover.File) time.Duration {
	limit := startTimeout
	for _, f := range files {
		limit += time.Duration(f.Size/int64(slowestInput)) * time.Second
	}
	return limit
}

var errNotConnected = drover.Errorf(drover.KindTransient, "the instance is not connected")

// environment returns a job's environment: Drover's variables override the job's own.
func (c *Controller) environment(spec jobSpec, f engine.Start, instance string) map[string]string {
	env := maps.Clone(spec.Env)
	if env == nil {
		env = map[string]string{}
	}
	env["DROVER_JOB_ID"] = f.Attempt.Job.String()
	env["DROVER_ATTEMPT"] = strconv.Itoa(f.Attempt.Number)
	env["DROVER_INSTANCE"] = instance
	env["DROVER_INSTANCE_TYPE"] = f.Type
	if f.Interrupted != 0 {
		env["DROVER_INTERRUPTED_AT"] = f.Interrupted.Std().Format(time.RFC3339)
	}
	if url := c.current().URL; url != "" {
		env["DROVER_API"] = url
	}
	env["DROVER_TOKEN"] = c.cfg.Key.AttemptToken(c.state.Nonce, f.Attempt).Reveal()
	if spec.Array.Set {
		env["DROVER_ARRAY_INDEX"] = strconv.Itoa(f.Attempt.Job.Index)
		env["DROVER_ARRAY_SIZE"] = strconv.Itoa(spec.Array.Size())
	}
	if file := spec.FileOf(f.Attempt.Job.Index); file != "" {
		env["DROVER_FILE"] = file
	}
	if spec.Gang > 0 {
		gang, place := spec.GangOf(f.Attempt.Job.Index)
		env["DROVER_GANG"] = strconv.Itoa(gang)
		env["DROVER_GANG_INDEX"] = strconv.Itoa(place)
		env["DROVER_GANG_SIZE"] = strconv.Itoa(spec.Gang)
	}
	return env
}

// hosts lists the hosts of addresses, which may have ports, separated by commas.
func hosts(addresses []string) string {
	list := slices.Clone(addresses)
	for i, a := range list {
		if host, _, err := net.SplitHostPort(a); err == nil {
			list[i] = host
		}
	}
	return strings.Join(list, ",")
}

// jobSpec is a job as it was submitted.
type jobSpec struct {
	drover.JobSpec
	number int64
	own    map[string]drover.File // the files for one element only, by destination
}

// newJobSpec sorts a job's files by element.
func newJobSpec(spec drover.JobSpec, number int64) jobSpec {
	s := jobSpec{spec, number, map[string]drover.File{}}
	for _, name := range spec.Foreach {
		s.own[name] = drover.File{}
	}
	s.Files = slices.DeleteFunc(s.Files, func(f drover.File) bool {
		_, own := s.own[f.Path]
		if own {
			s.own[f.Path] = f
		}
		return own
	})
	return s
}

// filesOf returns the batch's files for an element.
func (s jobSpec) filesOf(index int) []drover.File {
	file := s.FileOf(index)
	if file == "" {
		return s.Files
	}
	return append(slices.Clone(s.Files), s.own[file])
}

// maxSpecs is how many specifications are kept in memory. An array has one for all its elements.
const maxSpecs = 1000

func (c *Controller) spec(ctx context.Context, number int64) (jobSpec, error) {
	c.mu.Lock()
	s, ok := c.specs[number]
	c.mu.Unlock()
	if ok {
		return s, nil
	}
	spec, _, err := c.cfg.Store.Spec(ctx, number)
	if err != nil {
		return jobSpec{}, err
	}
	s = newJobSpec(spec, number)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.specs) >= maxSpecs {
		clear(c.specs)
	}
	c.specs[number] = s
	return s, nil
}

func (c *Controller) stopAttempt(f engine.Stop) {
	if l := c.link(f.Instance); l != nil {
		c.told(l, l.conn.Stop(f.Attempt, f.Grace))
	}
}

// forget lets the runner clean up after an attempt once nobody follows its output. It is sent over the current link or
// not at all: if a later hello names the attempt again, the engine decides again.
func (c *Controller) forget(ctx context.Context, f engine.Forget) {
	l, not := c.link(f.Instance), ""
	if f.Foreign {
		not = c.state.Nonce
	} else {
		c.awaitFollowers(ctx, f.Attempt)
	}
	if l == nil {
		return
	}
	if !f.Foreign {
		l.mu.Lock()
		delete(l.ends, f.Attempt)
		l.mu.Unlock()
	}
	c.told(l, l.conn.Forget(f.Attempt, not))
}

// told logs that a message without a reply could not be sent. The connection is then about to end, and the next hello
// replaces the message.
func (c *Controller) told(l *link, err error) {
	if err != nil {
		c.cfg.Log.Debug("a message to the runner cannot be sent", logkey.Instance, l.name, logkey.Error, err)
	}
}

// inputFiles is the files of a job's inputs, and how to open each by its hash.
type inputFiles struct {
	list  []drover.File
	opens map[string]func() (io.ReadCloser, int64, error) // with the size
	named int64                                           // total size of other jobs' outputs, according to the records
}

func (in *inputFiles) add(f drover.File, open func() (io.ReadCloser, error)) {
	in.list = append(in.list, f)
	in.opens[f.Hash] = func() (io.ReadCloser, int64, error) {
		r, err := open()
		return r, f.Size, err
	}
}

func (in *inputFiles) open(hash string) (io.ReadCloser, int64, error) {
	open := in.opens[hash]
	if open == nil {
		return nil, 0, drover.Errorf(drover.KindInvalid, "the runner asked for a file with hash %.12s, which is not one of the job's files", hash)
	}
	return open()
}

// inputs lists what is placed in a job's working folder: files of the batch, and other jobs' outputs in a folder
// named after each.
func (c *Controller) inputs(ctx context.Context, spec jobSpec, index int) (*inputFiles, error) {
	in := &inputFiles{opens: map[string]func() (io.ReadCloser, int64, error){}}
	for _, f := range spec.filesOf(index) {
		in.add(f, func() (io.ReadCloser, error) {
			if size, there := c.cfg.Inputs.Size(f.Hash); there && size != f.Size {
				return nil, wrongSize(f, size)
			}
			return c.cfg.Inputs.Open(f.Hash)
		})
	}
	for _, input := range spec.Inputs {
		if input.From == "" {
			continue
		}
		if err := c.outputsOf(ctx, spec, input.From, in); err != nil {
			return nil, err
		}
	}
	return in, nil
}

func (c *Controller) outputsOf(ctx context.Context, spec jobSpec, job string, in *inputFiles) error {
	number, err := c.cfg.Store.Sibling(ctx, spec.number, job)
	if err != nil {
		return err
	}
	size, err := c.cfg.Store.OutputsSize(ctx, number)
	if err != nil {
		return err
	}
	if in.named += size; in.named > wire.MaxLine { // too large for a message to an instance
		return drover.Errorf(drover.KindInvalid, "with the outputs of job %s, there are too many inputs: their names take up %v, but the limit is %v", job, drover.Bytes(in.named), drover.Bytes(wire.MaxLine)).
			WithHint("have each element produce one file, such as an archive")
	}
	outputs, err := c.cfg.Store.Outputs(ctx, number)
	if err != nil {
		return err
	}
	from := c.folder(jobSpec{JobSpec: drover.JobSpec{Name: job}, number: number})
	for index, files := range outputs {
		for _, f := range files {
			laid := f
			laid.Path = path.Join(job, f.Path)
			if index >= 0 {
				laid.Path = path.Join(job, strconv.Itoa(index), f.Path)
			}
			in.add(laid, func() (io.ReadCloser, error) {
				r, err := c.cfg.Results.OpenOutput(from, index, f)
				if err != nil {
					return nil, drover.Errorf(drover.KindInvalid, "output %s of job %s no longer exists: %v", f.Path, job, err)
				}
				return r, nil
			})
		}
	}
	return nil
}
