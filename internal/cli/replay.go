package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"drover"
	"drover/internal/daemon"
	"drover/internal/human"
	"drover/internal/record"
)

// replayFlags are the flags of `drover replay`.
type replayFlags struct {
	until  string
	about  string
	events bool
}

func (a *app) replayCommand() *cobra.Command {
	var f replayFlags
	cmd := named(&cobra.Command{
		Use:   "replay [RECORDING…]",
		Short: "Decide a recording's events again, and say whether each decision is the same",
		Long: `Decide again what a controller decided, from what it recorded, and say whether each decision is the same; if one is not, which, and
in what. A RECORDING is a segment, a folder of them, or the ID of a run; without one, it is what the controller of -c records.

With --until, it stops at a time, and says what the controller knew then; with --about, at the first event that concerns a job, an attempt or
an instance; with both, it stops at the time and explains the subject. With --events, it lists what happened and what followed from it,
with --about only what concerns the subject.

A recording is decided the same by the version that made it. Another may decide otherwise: then the first decision that differs is shown.`,
		Example: `  drover replay run-x7k2pq
  drover replay -c drover.yaml --until 2026-03-01T14:02:00Z --about 17.3
  drover replay --events --about here-n-5 recording/00000012.jsonl.gz
  drover replay --until 90s -o json run-x7k2pq | jq .state.instances`,
		RunE: func(cmd *cobra.Command, args []string) error { return a.replay(cmd.Context(), f, args) },
	})
	flags := cmd.Flags()
	flags.StringVar(&f.until, "until", "", "stop at this `time`, such as 2026-03-01T14:02:00Z, or this long after the beginning, such as 90s")
	flags.StringVar(&f.about, "about", "", "stop at what concerns this `subject`: a job, an attempt or an instance")
	flags.BoolVar(&f.events, "events", false, "list the events, a line each, and what was done about them")
	cmd.ValidArgsFunction = completeRecordings
	return cmd
}

// replay replays recordings, and says how that went.
func (a *app) replay(ctx context.Context, f replayFlags, args []string) error {
	p, err := a.newPlayer(f)
	if err != nil {
		return err
	}
	paths, err := a.recordings(args)
	if err != nil {
		return err
	}
	for _, path := range paths {
		if err := p.play(ctx, path); err != nil {
			return fmt.Errorf("replaying %s: %w", relative(path), err)
		}
		if p.stopped {
			return p.report()
		}
	}
	if (p.timed || p.subject != nil) && !p.list {
		return drover.Errorf(drover.KindNotFound, "the recording ends at %s, before %s", human.Clock(p.now), p.target()).
			WithHint("drover replay --events lists what is in it")
	}
	return p.report()
}

// recordings are the files that the arguments of a command line name, in the order in which they were written.
func (a *app) recordings(args []string) (paths []string, err error) {
	if len(args) == 0 {
		own, err := a.ownRecording()
		if err != nil {
			return nil, err
		}
		args = []string{own}
	}
	for _, arg := range args {
		files, err := recordingFiles(arg)
		if err != nil {
			return nil, err
		}
		paths = append(paths, files...)
	}
	return paths, nil
}

// ownRecording is what the controller of the configuration records.
func (a *app) ownRecording() (string, error) {
	if a.config == "" {
		return "", drover.Errorf(drover.KindInvalid, "no recording is named").
			WithHint("name a file, a folder or a run, as in drover replay run-x7k2pq; or, for a controller's, its configuration: -c drover.yaml")
	}
	_, folder, err := a.daemon()
	return folder.File("recording"), err
}

// recordingFiles are the segments that a name stands for: a file, a folder, or a run.
func recordingFiles(name string) ([]string, error) {
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		name, info, err = findRecording(name)
	}
	switch {
	case err != nil:
		return nil, err
	case !info.IsDir():
		return []string{name}, nil
	}
	files, err := record.NewFolder(name, record.DefaultLimit).Segments()
	if err == nil && len(files) == 0 {
		err = drover.Errorf(drover.KindNotFound, "there is no recording in %s", name)
	}
	return files, err
}

// findRecording finds the recording of a run, whether or not that came to its end.
func findRecording(run string) (string, fs.FileInfo, error) {
	home, err := daemon.StateHome()
	if err != nil {
		return "", nil, err
	}
	for _, path := range []string{daemon.RecordingOf(home, run), filepath.Join(home, run, "recording")} {
		if info, err := os.Stat(path); err == nil && filepath.IsLocal(run) {
			return path, info, nil
		}
	}
	e := drover.Errorf(drover.KindNotFound, "there is neither a file nor a run %s with a recording", run)
	if runs := recordedRuns(home); len(runs) > 0 {
		return "", nil, e.WithHint("the last run that has one: %s", runs[0])
	}
	return "", nil, e
}

// completeRecordings offers runs that have a recording, and files.
func completeRecordings(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	home, err := daemon.StateHome()
	if err != nil {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return recordedRuns(home), cobra.ShellCompDirectiveDefault
}

// recordedRuns are the runs that came to their end and whose recordings are kept, the last first.
func recordedRuns(home string) (ids []string) {
	entries, err := os.ReadDir(filepath.Join(home, "recordings"))
	if err != nil {
		return nil
	}
	for _, e := range daemon.ByAge(entries) {
		ids = append(ids, e.Name())
	}
	return ids
}

// parseUntil reads a time, or how long after the beginning.
func parseUntil(text string) (at drover.Time, after time.Duration, err error) {
	if after, err = time.ParseDuration(text); err == nil && after >= 0 {
		return 0, after, nil
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateTime} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return drover.TimeOf(t), 0, nil
		}
	}
	return 0, 0, drover.Errorf(drover.KindInvalid, "--until %s is not a time", text).
		WithHint("write --until 2026-03-01T14:02:00Z, --until '2026-03-01 14:02:00', or --until 90s for 90 seconds after the beginning")
}

// newPlayer makes a player that stops where the flags say.
func (a *app) newPlayer(f replayFlags) (p *player, err error) {
	p = &player{app: a, list: f.events, began: time.Now(), said: time.Now()}
	if f.until != "" {
		if p.until, p.after, err = parseUntil(f.until); err != nil {
			return nil, err
		}
		p.timed = true
	}
	if f.about != "" {
		subject, err := record.ParseSubject(f.about)
		if err != nil {
			return nil, err
		}
		p.subject = &subject
	}
	if f.events && !slices.Contains([]output{outputTable, outputJSON, outputYAML}, a.output) {
		return nil, drover.Errorf(drover.KindInvalid, "--events prints lines, json or yaml, not %s", string(a.output)).WithHint("write -o json or yaml, or leave it out")
	}
	return p, nil
}
