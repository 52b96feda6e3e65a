// Package container runs commands in containers, with docker or podman.
//
// A [Runtime] is one of them, controlled by its command-line client with argument lists: there is no shell and no
// client library, and text from a job cannot become an option. [Images] fetches images, each once however many callers
// wait for it.
//
// A container is created first and started afterwards, by a client that runs as long as the container and carries its
// output. It has the instance's network, only the mounted folders, and its job's limits. It is never restarted, and
// remains after it has ended until it is removed.
package container

import (
	"context"

	"golang.org/x/sys/unix"

	"drover"
)

// Runtime runs containers. Its methods are safe for concurrent use, end when their contexts do, and return errors with
// the runtime's text.
type Runtime interface {
	// Name returns the runtime's name, which Open accepts.
	Name() string

	// Probe returns the user that a container must run as so that its files belong to this process's user. It fails if
	// the runtime does not work.
	Probe(ctx context.Context) (user string, err error)

	// Image looks for an image on the instance. found is false if there is none.
	Image(ctx context.Context, ref string) (image Image, found bool, err error)

	// Pull fetches an image. Its error is an *ImageError, unless the context ended it.
	Pull(ctx context.Context, ref string) error

	// Create makes a container, whose image must be present, and does not start it.
	Create(ctx context.Context, s Spec) error

	// Start returns the program and arguments of a client that starts a created container, copies the container's two
	// streams to its own, and ends when the container does.
	Start(name string) (program string, args []string)

	// Signal sends a signal to the first process of a running container.
	Signal(ctx context.Context, name string, sig unix.Signal) error

	// State returns a container's state.
	State(ctx context.Context, name string) (State, error)

	// Remove ends a container and removes it. A missing container is no error.
	Remove(ctx context.Context, name string) error

	// List returns the names of the containers that have all the labels, including ended ones.
	List(ctx context.Context, labels map[string]string) ([]string, error)
}

// Image is an image's configuration, as far as it is needed.
type Image struct {
	Entrypoint []string `json:"Entrypoint"`
	Cmd        []string `json:"Cmd"`
}

// Command returns the image's default command; empty if it has none.
func (i Image) Command() []string { return append(append([]string(nil), i.Entrypoint...), i.Cmd...) }

// Spec describes a container.
type Spec struct {
	Name    string            `json:"name"`
	Labels  map[string]string `json:"labels,omitempty"`
	Image   string            `json:"image"`
	Command []string          `json:"command"`       // in place of the image's entry point and its arguments
	Env     map[string]string `json:"env,omitempty"` // the command must Unpack it
	Dir     string            `json:"dir"`           // the working folder, in the container
	User    string            `json:"user"`          // as Probe returns it
	Mounts  []Mount           `json:"mounts,omitempty"`
	Limits  drover.Resources  `json:"limits"` // of CPU and memory; 0: none
}

// Mount mounts a file or folder of the instance in a container.
type Mount struct {
	Source   string `json:"source"`
	Target   string `json:"target"`
	ReadOnly bool   `json:"read_only,omitempty"`
}

// State is a container's state.
type State struct {
	Running   bool
	OOMKilled bool // the kernel killed a process in it, because the container exceeded its memory limit
	ExitCode  int
	Error     string // why it could not be started
}
