package container

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// client is a Runtime behind a docker-compatible command-line client. docker and podman differ only in whose, which
// finds the user.
type client struct {
	program string
	whose   func(ctx context.Context, c client) (user string, err error)
}

// Names returns the runtimes that Open supports, in the order in which the runner tries them.
func Names() []string { return []string{"docker", "podman"} }

// Open returns the runtime of that name. It starts nothing, and the runtime need not be installed.
func Open(name string) (Runtime, error) {
	switch name {
	case "docker":
		return client{"docker", dockerUser}, nil
	case "podman":
		return client{"podman", podmanUser}, nil
	}
	return nil, fmt.Errorf("%q is not a container runtime; choose from %s", name, strings.Join(Names(), " and "))
}

// Find returns the first of the runtimes that works on this instance, and the user that containers run as. If none
// works, its error reports what is wrong with each.
func Find(ctx context.Context, names ...string) (Runtime, string, error) {
	var wrong []error
	for _, name := range names {
		r, err := Open(name)
		if err != nil {
			return nil, "", err
		}
		user, err := r.Probe(ctx)
		if err == nil {
			return r, user, nil
		}
		wrong = append(wrong, fmt.Errorf("%s: %w", name, err))
	}
	return nil, "", &FindError{wrong}
}

// FindError reports what is wrong with each runtime that was tried.
type FindError struct{ wrong []error }

func (e *FindError) Error() string {
	var texts []string
	for _, err := range e.wrong {
		texts = append(texts, err.Error())
	}
	return strings.Join(texts, "; ")
}

// NoneInstalled reports whether none of the runtimes is installed, rather than broken.
func (e *FindError) NoneInstalled() bool {
	return !slices.ContainsFunc(e.wrong, func(err error) bool { return !errors.Is(err, errNotInstalled) })
}

func (c client) Name() string { return c.program }

func (c client) Probe(ctx context.Context) (string, error) { return c.whose(ctx, c) }

// dockerUser returns this process's own user, or the container's root if docker is rootless.
func dockerUser(ctx context.Context, c client) (string, error) {
	text, err := c.run(ctx, nil, "info", "--format", "{{json .SecurityOptions}}")
	if err != nil {
		return "", err
	}
	var options []string
	if err := json.Unmarshal(text, &options); err != nil {
		return "", fmt.Errorf("it does not respond like docker: %w", err)
	}
	for _, o := range options {
		if strings.HasPrefix(o, "name=rootless") {
			return RootUser, nil
		}
	}
	return fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid()), nil
}

// podmanUser returns the container's root, which is the user that calls podman, root or not.
func podmanUser(ctx context.Context, c client) (string, error) {
	_, err := c.run(ctx, nil, "info", "--format", "{{.Version.Version}}")
	return RootUser, err
}

// RootUser is a container's root.
const RootUser = "0:0"

func (c client) Image(ctx context.Context, ref string) (i Image, found bool, err error) {
	text, err := c.run(ctx, nil, "image", "inspect", "--format", "{{json .Config}}", "--", full(ref))
	if err != nil && missing(err) {
		return i, false, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &i)
	}
	return i, err == nil, err
}

// missing recognizes the runtimes' errors for a missing image.
func missing(err error) bool {
	said := strings.ToLower(err.Error())
	return strings.Contains(said, "no such image") || strings.Contains(said, "image not known") || strings.Contains(said, "no such object")
}

func (c client) Pull(ctx context.Context, ref string) error {
	_, err := c.run(ctx, nil, "pull", "--quiet", "--", full(ref))
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return imageError(ref, err.Error())
}

func (c client) Create(ctx context.Context, s Spec) error {
	args, err := createArgs(s)
	if err != nil {
		return err
	}
	_, err = c.run(ctx, s.Env, args...)
	return err
}

func (c client) Start(name string) (string, []string) {
	return c.program, []string{"start", "--attach", "--", name}
}

func (c client) Signal(ctx context.Context, name string, sig unix.Signal) error {
	_, err := c.run(ctx, nil, "kill", "--signal="+strconv.Itoa(int(sig)), "--", name)
	return err
}

func (c client) State(ctx context.Context, name string) (s State, err error) {
	text, err := c.run(ctx, nil, "inspect", "--type=container", "--format", "{{json .State}}", "--", name)
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	return s, err
}

func (c client) Remove(ctx context.Context, name string) error {
	_, err := c.run(ctx, nil, "rm", "--force", "--volumes", "--", name)
	if err != nil && strings.Contains(strings.ToLower(err.Error()), "no such container") {
		return nil
	}
	return err
}

func (c client) List(ctx context.Context, labels map[string]string) ([]string, error) {
	args := []string{"ps", "--all", "--format", "{{.Names}}"}
	for _, pair := range pairs(labels) {
		args = append(args, "--filter=label="+pair)
	}
	text, err := c.run(ctx, nil, args...)
	return strings.Fields(string(text)), err
}

// waitDelay bounds the wait for the output of a client that has ended: a process that it started may hold the output
// open.
const waitDelay = time.Second

// maxSaid is how many bytes of a client's output are kept.
const maxSaid = 256 << 10

// run runs one command of the client and returns its standard output. Its error has the client's text. env is a
// container's environment: it is passed through standard input and the client's environment, so that it is in no
// argument list or file.
func (c client) run(ctx context.Context, env map[string]string, args ...string) ([]byte, error) {
	var out, said bounded
	cmd := exec.CommandContext(ctx, c.program, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(lines(env)), &out, &said
	cmd.Env = append(os.Environ(), unlined(env)...)
	cmd.WaitDelay = waitDelay
	if err := cmd.Run(); err != nil {
		return nil, clientError(ctx, err, said.text.String())
	}
	return out.text.Bytes(), nil
}

var errNotInstalled = errors.New("it is not installed")

// clientError returns the last line of a client's standard error, without its preamble.
func clientError(ctx context.Context, err error, said string) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, exec.ErrNotFound):
		return errNotInstalled
	}
	line := strings.TrimSpace(said)
	line = line[strings.LastIndexByte(line, '\n')+1:]
	for _, preamble := range []string{"Error: ", "Error response from daemon: "} {
		line = strings.TrimPrefix(line, preamble)
	}
	if line == "" {
		return err
	}
	return errors.New(line)
}

// bounded keeps the end of what is written to it.
type bounded struct{ text bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	last := p[max(0, len(p)-maxSaid):]
	if over := b.text.Len() + len(last) - maxSaid; over > 0 {
		b.text.Next(over)
	}
	b.text.Write(last)
	return len(p), nil
}
