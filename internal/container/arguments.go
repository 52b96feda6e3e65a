package container

import (
	"encoding/csv"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"drover"
)

// createArgs returns the arguments with which both docker and podman create a container. Text from a job is either
// joined to its option in one argument, or follows "--", so it cannot become an option.
func createArgs(s Spec) ([]string, error) {
	if len(s.Command) == 0 {
		return nil, errors.New("there is no command for the container")
	}
	args := []string{"create", "--name=" + s.Name,
		"--pull=never",                     // Images pulls
		"--network=host",                   // DROVER_API listens on the instance's loopback
		"--log-driver=none",                // the client that starts it reads its output
		"--security-opt=label=disable",     // a mounted folder does not have a container's label
		"--security-opt=no-new-privileges", // no process becomes another user, whose files nobody could remove
		"--userns=host",                    // a user inside is the same user outside, even if the runtime remaps users
		"--restart=no",                     // a command is started once
		"--stop-timeout=0",                 // removal does not wait after SIGTERM: the supervisor does the stopping
		"--env-file=/dev/stdin",            // see lines
		"--user=" + s.User, "--workdir=" + s.Dir}
	for _, pair := range pairs(s.Labels) {
		args = append(args, "--label="+pair)
	}
	for n := range unlinedNames(s.Env) {
		args = append(args, "--env="+alias(n))
	}
	for _, m := range s.Mounts {
		value, err := mountValue(m)
		if err != nil {
			return nil, err
		}
		args = append(args, "--mount="+value)
	}
	args = append(args, limitArgs(s.Limits)...)
	args = append(args, "--entrypoint="+s.Command[0], "--", full(s.Image))
	return append(args, s.Command[1:]...), nil
}

// MinMemory is the lowest memory limit of a container: the runtime's process that starts it runs within the limit too.
const MinMemory = 32 * drover.MiB

// limitArgs returns the arguments that limit CPUs and memory, without additional swap. A runtime refuses a limit above
// the number of CPUs.
func limitArgs(r drover.Resources) (args []string) {
	if r.CPU > 0 {
		args = append(args, "--cpus="+min(r.CPU, drover.MilliCPU(1000*runtime.NumCPU())).String())
	}
	if r.Memory > 0 {
		bytes := strconv.FormatInt(int64(max(r.Memory, MinMemory)), 10)
		args = append(args, "--memory="+bytes, "--memory-swap="+bytes)
	}
	return args
}

// mountValue formats a mount as the line of comma-separated values that runtimes read.
func mountValue(m Mount) (string, error) {
	fields := []string{"type=bind", "source=" + m.Source, "target=" + m.Target}
	if m.ReadOnly {
		fields = append(fields, "readonly")
	}
	if strings.Contains(m.Source+m.Target, "\n") {
		return "", fmt.Errorf("%q cannot be mounted: its path has a line break", m.Source)
	}
	var line strings.Builder
	w := csv.NewWriter(&line)
	err := w.Write(fields)
	w.Flush()
	if err = errors.Join(err, w.Error()); err != nil {
		return "", fmt.Errorf("%q cannot be mounted: %w", m.Source, err)
	}
	return strings.TrimSuffix(line.String(), "\n"), nil
}

// CheckEnv returns an error that names a variable which cannot be set in a container; nil if all can.
func CheckEnv(env map[string]string) error {
	for name := range env {
		if !variable.MatchString(name) {
			return fmt.Errorf("%q is not a valid name for a container's environment variable", name)
		}
	}
	return nil
}

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)

// lines formats the environment as a file of lines. Nearly all variables reach the container this way: in the client's
// own environment, a variable such as HOME, DOCKER_HOST or LD_PRELOAD would affect the client.
func lines(env map[string]string) string {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if !unlinable(env[name]) {
			text.WriteString(name + "=" + env[name] + "\n")
		}
	}
	return text.String()
}

// unlined returns, for the client's own environment, the variables whose values do not fit in a line; unlinedNames
// returns their names. Each is stored as NAME=VALUE in a variable whose name means nothing to the client: see Unpack.
func unlined(env map[string]string) (list []string) {
	for n, name := range unlinedNames(env) {
		list = append(list, alias(n)+"="+name+"="+env[name])
	}
	return list
}

const aliasPrefix = "DROVER_UNLINED_"

func alias(n int) string { return aliasPrefix + strconv.Itoa(n) }

// Unpack restores a Spec's environment from the one that its container's first process finds.
func Unpack(found []string) []string {
	list := make([]string, len(found))
	for i, pair := range found {
		if name, value, _ := strings.Cut(pair, "="); strings.HasPrefix(name, aliasPrefix) && strings.Contains(value, "=") {
			pair = value
		}
		list[i] = pair
	}
	return list
}

func unlinedNames(env map[string]string) (list []string) {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if unlinable(env[name]) {
			list = append(list, name)
		}
	}
	return list
}

// unlinable reports whether a value has more than one line, is longer than the longest line that clients read, or
// begins with a quotation mark, which some clients interpret.
func unlinable(value string) bool {
	const longest = 32 << 10
	return strings.ContainsAny(value, "\r\n") || len(value) > longest || strings.HasPrefix(value, `"`) || strings.HasPrefix(value, "'")
}

// pairs returns a map's entries as NAME=VALUE, sorted.
func pairs(m map[string]string) (list []string) {
	for _, name := range slices.Sorted(maps.Keys(m)) {
		list = append(list, name+"="+m[name])
	}
	return list
}
