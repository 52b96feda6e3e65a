package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"drover"
	"drover/internal/config"
	"drover/internal/control"
	"drover/internal/daemon"
	"drover/internal/remote"
	"drover/internal/simulate"
)

// jobFlags describe one job on the command line, as a batch file would.
type jobFlags struct {
	name     string
	image    string
	vcpus    string
	memory   string
	disk     string
	gpus     int
	array    string
	gang     int
	env      []string
	inputs   []string
	outputs  []string
	labels   []string
	priority int
	timeout  time.Duration
	expected time.Duration
	maxWait  time.Duration

	set *pflag.FlagSet // to see which were given
}

// jobFlagNames are the flags that describe a job.
var jobFlagNames = [...]string{"name", "image", "vcpus", "memory", "disk", "gpus", "array", "gang", "env", "input", "collect", "label", "priority", "timeout", "expected", "max-wait"}

func (f *jobFlags) add(flags *pflag.FlagSet) {
	f.set = flags
	flags.StringVar(&f.name, "name", "", "`name` of the batch; default: the command's or the image's")
	flags.StringVar(&f.image, "image", "", "container `image` to run the command in; without a command, the image's own command runs")
	flags.StringVar(&f.vcpus, "vcpus", "", "`number` of vCPUs per job, such as 2 or 0.5")
	flags.StringVar(&f.memory, "memory", "", "memory per job: a `size` such as 4Gi")
	flags.StringVar(&f.disk, "disk", "", "disk space per job: a `size` such as 10Gi")
	flags.IntVar(&f.gpus, "gpus", 0, "`number` of GPUs per job")
	flags.StringVar(&f.array, "array", "", "run the command once for each index: `N` for 0…N-1, or a range such as 1-1000; DROVER_ARRAY_INDEX contains the index")
	flags.IntVar(&f.gang, "gang", 0, "start every `N` consecutive elements of the array together, or not at all")
	flags.StringArrayVar(&f.env, "env", nil, "environment variable `NAME=VALUE`; may be repeated")
	flags.StringArrayVar(&f.inputs, "input", nil, "`file` or folder to copy into the job's working folder; may be repeated")
	flags.StringArrayVar(&f.outputs, "collect", nil, "`pattern` of files to fetch when the job ends, such as '*.png'; may be repeated")
	flags.StringArrayVar(&f.labels, "label", nil, "label `NAME=VALUE` for searches, budgets and shares; may be repeated")
	flags.IntVar(&f.priority, "priority", drover.DefaultPriority, "jobs with a higher `number` start first; 0: do not start the job")
	flags.DurationVar(&f.timeout, "timeout", 0, "stop a job after this time")
	flags.DurationVar(&f.expected, "expected", 0, "how long a job will probably run; helps to choose instances, but does not stop the job")
	flags.DurationVar(&f.maxWait, "max-wait", 0, "how long a job may wait for room on a running instance, beyond the time a new one takes to boot")
}

// work is what a command line runs.
type work struct {
	batch    drover.Batch
	file     *config.BatchFile // nil when it came from the command line
	streamed bool
}

// work reads the batch file that args name, or makes a batch of the command in args.
func (f *jobFlags) work(args []string) (work, error) {
	switch {
	case len(args) == 0 && f.image == "":
		return work{}, drover.Errorf(drover.KindInvalid, "nothing to run").WithHint("give a BATCH.yaml, or a command: -- CMD ARG…")
	case len(args) > 0 && isBatchFile(args[0]) && f.set.ArgsLenAtDash() != 0:
		return f.batchFile(args)
	}
	if err := f.refuseFile(args); err != nil {
		return work{}, err
	}
	if err := refuseInput(os.Stdin); err != nil {
		return work{}, err
	}
	job, err := f.job(args)
	if err != nil {
		return work{}, err
	}
	return work{batch: drover.Batch{Name: job.Name, Jobs: []drover.JobSpec{job}}, streamed: !job.Array.Set}, nil
}

func isBatchFile(arg string) bool {
	return strings.HasSuffix(arg, ".yaml") || strings.HasSuffix(arg, ".yml")
}

func (f *jobFlags) batchFile(args []string) (work, error) {
	if len(args) > 1 {
		return work{}, drover.Errorf(drover.KindInvalid, "%s is a batch file, so no arguments may follow it", args[0]).WithHint("run one batch at a time")
	}
	if given := f.given(); given != "" {
		return work{}, drover.Errorf(drover.KindInvalid, "--%s describes a command, but %s is a batch file", given, args[0]).WithHint("set it in the file")
	}
	file, err := config.LoadBatch(args[0])
	if err != nil {
		return work{}, err
	}
	return work{batch: file.Batch, file: file}, nil
}

// refuseFile rejects a file or folder alone where a batch or a command is expected: it is probably a batch under
// another name, and it does not exist on an instance.
func (f *jobFlags) refuseFile(args []string) error {
	if len(args) != 1 || f.image != "" || f.set.ArgsLenAtDash() >= 0 {
		return nil
	}
	info, err := os.Stat(args[0])
	switch {
	case args[0] == "-":
		return drover.Errorf(drover.KindInvalid, "a batch cannot be read from standard input").WithHint("give a BATCH.yaml")
	case err != nil:
		return nil
	case info.IsDir():
		return drover.Errorf(drover.KindInvalid, "%s is a folder, not a batch", args[0]).WithHint("the name of a batch file ends in .yaml")
	}
	return drover.Errorf(drover.KindInvalid, "%s is not a batch file: its name does not end in .yaml", args[0]).
		WithHint("to run it as a command, use -- %s; for a local file, also add --input %s", args[0], args[0])
}

// given returns the name of a flag that describes a job, if one is set.
func (f *jobFlags) given() string {
	for _, name := range jobFlagNames {
		if f.set.Changed(name) {
			return name
		}
	}
	return ""
}

// job makes the job of a command line. It is written as a batch file, so that the same checks apply.
func (f *jobFlags) job(command []string) (drover.JobSpec, error) {
	env, err := pairs("env", f.env)
	if err != nil {
		return drover.JobSpec{}, err
	}
	labels, err := pairs("label", f.labels)
	if err != nil {
		return drover.JobSpec{}, err
	}
	if err := f.sendProgram(command); err != nil {
		return drover.JobSpec{}, err
	}
	job := map[string]any{"name": f.jobName(command)}
	if len(command) > 0 || f.image == "" {
		job["command"] = command
	}
	for _, given := range []struct {
		flag, key string
		value     any
	}{
		{"image", "image", f.image}, {"array", "array", f.array}, {"env", "env", env}, {"label", "labels", labels}, {"collect", "outputs", f.outputs},
		{"priority", "priority", f.priority}, {"timeout", "timeout", f.timeout}, {"expected", "expected", f.expected},
		{"max-wait", "max_wait", f.maxWait},
	} {
		if !f.set.Changed(given.flag) {
			continue
		}
		if d, is := given.value.(time.Duration); is {
			if d < 0 {
				return drover.JobSpec{}, drover.Errorf(drover.KindInvalid, "--%s is %v, but must not be negative", given.flag, d)
			}
			given.value = d.String()
		}
		job[given.key] = given.value
	}
	if resources := f.resources(); len(resources) > 0 {
		job["resources"] = resources
	}
	inputs := []map[string]string{}
	for _, in := range f.inputs {
		inputs = append(inputs, map[string]string{"path": in})
	}
	if len(inputs) > 0 {
		job["inputs"] = inputs
	}
	spec, err := parseJob(job)
	if err == nil && f.set.Changed("gang") {
		spec.Gang, err = f.gangsOf(spec.Array)
	}
	return spec, err
}

// sendProgram sends along a program that the command names as ./PROGRAM, and rejects one in another folder, which would
// not exist on the instance.
func (f *jobFlags) sendProgram(command []string) error {
	if len(command) == 0 || filepath.IsAbs(command[0]) || !strings.Contains(command[0], "/") {
		return nil // it is searched for on the instance
	}
	program := filepath.Clean(command[0])
	if info, err := os.Stat(program); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	first, rest, _ := strings.Cut(filepath.ToSlash(program), "/")
	for _, in := range f.inputs {
		if filepath.Base(filepath.Clean(in)) == first {
			return nil
		}
	}
	if rest != "" {
		return drover.Errorf(drover.KindInvalid, "%s is a file here, but it would not exist on the instance", command[0]).
			WithHint("copy it to the instance: --input %s -- ./%s", program, filepath.Base(program))
	}
	f.inputs = append(f.inputs, program)
	return nil
}

// gangsOf returns how many elements of the array start together. Its errors name the flags.
func (f *jobFlags) gangsOf(all drover.Array) (int, error) {
	switch size := all.Size(); {
	case f.gang < 2 || f.gang > drover.MaxGang:
		return 0, drover.Errorf(drover.KindInvalid, "--gang %d is not between 2 and %d", f.gang, drover.MaxGang).WithHint("N is the number of jobs in each gang")
	case !all.Set:
		return 0, drover.Errorf(drover.KindInvalid, "--gang needs an array").WithHint("use --array %d for one gang", f.gang)
	case all.Only != "":
		return 0, drover.Errorf(drover.KindInvalid, "--gang needs consecutive elements, but --array %s has gaps", f.array).WithHint("use a count or one range")
	case size%f.gang != 0:
		most := all.First + (size/f.gang+1)*f.gang - 1
		return 0, drover.Errorf(drover.KindInvalid, "--array %s cannot be divided into gangs of %d", f.array, f.gang).
			WithHint("use --array %d-%d, or another --gang", all.First, most)
	}
	return f.gang, nil
}

func (f *jobFlags) resources() map[string]any {
	resources := map[string]any{}
	for key, value := range map[string]any{"vcpus": f.vcpus, "memory": f.memory, "disk": f.disk, "gpus": f.gpus} {
		if f.set.Changed(key) {
			resources[key] = value
		}
	}
	return resources
}

// jobName returns the given name, or else the command's or the image's name, if it is valid as a folder's name.
func (f *jobFlags) jobName(command []string) string {
	if f.name != "" {
		return f.name
	}
	program, _, _ := strings.Cut(filepath.Base(f.image), ":")
	if len(command) > 0 {
		program = filepath.Base(command[0])
	}
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '-'
	}, program)
	if name = strings.Trim(name, "-"); config.CheckName(name) != nil {
		return "command"
	}
	return name
}

// checkFits rejects a job that fits no type of the clouds, with its place in the file.
func (a *app) checkFits(ctx context.Context, c *config.Config, w work, batch drover.Batch) error {
	if w.file != nil {
		if err := errors.Join(w.file.CheckClouds(c.CloudNames()), w.file.CheckAfter()); err != nil {
			return err
		}
	}
	all, leftOut, err := a.listedOfferings(ctx, c, simulate.DefaultModels)
	if err != nil {
		return err
	}
	for _, job := range batch.Jobs {
		if job.Priority == 0 {
			return w.fault(job.Name, "priority", "job "+job.Name+" has priority 0, so it would never be started", "nobody can raise it during a run: use 1 or more")
		}
		shape := drover.Shape{Need: job.Resources, Placement: job.Placement, Spot: job.Spot}
		hint := shape.NearestMiss(all, leftOut...)
		if hint == "" {
			continue
		}
		return w.fault(job.Name, "resources", "no configured type can run job "+job.Name, hint)
	}
	return nil
}

// fault is an error in a key of a job, at its place if it has one.
func (w work) fault(job, key, message, hint string) error {
	if w.file != nil {
		return w.file.Fault(job, key, message, hint)
	}
	return drover.Errorf(drover.KindInvalid, "%s", message).WithHint("%s", hint)
}

// parseJob parses the job of a command line by the rules for batch files.
func parseJob(job map[string]any) (drover.JobSpec, error) {
	for key, value := range job { // JSON would replace other bytes
		if !utf8.ValidString(fmt.Sprint(value)) {
			return drover.JobSpec{}, drover.Errorf(drover.KindInvalid, "%s is not UTF-8 text: %q", key, fmt.Sprint(value)).WithHint("put such data in a file, and use --input")
		}
	}
	data, err := json.Marshal(map[string]any{"name": "command", "jobs": []any{job}})
	if err != nil {
		return drover.JobSpec{}, err
	}
	here, err := os.Getwd()
	if err != nil {
		return drover.JobSpec{}, err
	}
	file, err := config.ParseBatch("the command line", data, here)
	if faults, ok := errors.AsType[config.Faults](err); ok {
		for i := range faults {
			faults[i].Line = 0 // there is no file to refer to
		}
		return drover.JobSpec{}, faults
	}
	if err != nil {
		return drover.JobSpec{}, err
	}
	return file.Batch.Jobs[0], nil
}

// offeringsOf returns what a configuration's clouds offer, and what it leaves out. It creates nothing. Where the
// configuration does not set a cloud's billing, it fills in the driver's.
func (a *app) offeringsOf(ctx context.Context, c *config.Config) (all []drover.Offering, leftOut []drover.LeftOut, err error) {
	err = a.withClouds(ctx, c, func(ctx context.Context, clouds []control.Cloud) error {
		for i := range c.Clouds {
			period := &c.Clouds[i].Prices.Period
			*period = cmp.Or(*period, clouds[i].Driver.Capabilities().Billing.Period)
		}
		var err error
		all, leftOut, err = daemon.Offerings(ctx, clouds)
		return err
	})
	return all, leftOut, err
}

// askingFleet is the fleet under which clouds are opened only to be asked something.
const askingFleet = "plan"

// withClouds opens a configuration's clouds while use runs. Ctrl-C ends it, even if nothing notices until all is done,
// and leaves no files.
func (a *app) withClouds(ctx context.Context, c *config.Config, use func(context.Context, []control.Cloud) error) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := a.useClouds(ctx, c, use)
	if ctx.Err() != nil {
		return exit(exitInterrupted)
	}
	return err
}

func (a *app) useClouds(ctx context.Context, c *config.Config, use func(context.Context, []control.Cloud) error) error {
	home, err := daemon.MakeStateHome()
	if err != nil {
		return err
	}
	// It is in the folder of runs, since a driver may measure the disk there.
	folder, err := os.MkdirTemp(home, "plan-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	clouds, err := daemon.OpenClouds(ctx, c.Clouds, daemon.Opening{Drivers: a.program.Drivers, Fleet: askingFleet, Folder: folder, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer daemon.CloseClouds(clouds)
	return use(ctx, clouds)
}

// checkKeys checks every cloud's own keys. It makes no calls: it opens only what is on this host.
func (a *app) checkKeys(ctx context.Context, c *config.Config) error {
	here := *c
	here.Clouds = nil
	for _, cloud := range c.Clouds {
		kind := a.program.Drivers[cloud.Driver]
		if kind.Here {
			here.Clouds = append(here.Clouds, cloud)
			continue
		}
		if _, err := remote.LoadLoginKeys(daemon.Paths(cloud.SSH.Keys)); err != nil {
			return err
		}
		if err := kind.CheckKeys(cloud); err != nil {
			return err
		}
	}
	_, _, err := a.offeringsOf(ctx, &here)
	return err
}
