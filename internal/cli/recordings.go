package cli

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"drover"
	"drover/internal/daemon"
	"drover/internal/record"
)

// recordings returns the files that the arguments name, in the order in which they were written.
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

// ownRecording returns the recording of the configuration's controller.
func (a *app) ownRecording() (string, error) {
	if a.config == "" {
		return "", drover.Errorf(drover.KindInvalid, "no recording specified").
			WithHint("name a file, a folder or a run, as in drover replay run-x7k2pq; for a controller's recording, use its configuration: -c drover.yaml")
	}
	_, folder, err := a.daemon()
	return folder.File("recording"), err
}

// recordingFiles returns the segments that a name stands for: a file, a folder, or a run.
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

// findRecording finds the recording of a run, finished or not.
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
	e := drover.Errorf(drover.KindNotFound, "there is no file or run %s with a recording", run)
	if runs := recordedRuns(home); len(runs) > 0 {
		return "", nil, e.WithHint("the last run with a recording: %s", runs[0])
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

// recordedRuns returns the finished runs whose recordings are kept, newest first.
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
