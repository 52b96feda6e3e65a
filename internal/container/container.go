// Package container runs commands in containers, under whichever of docker and podman an instance has.
//
// A [Runtime] is one of them, driven by its command-line client, which takes argument lists: there is no shell, no
// library of a daemon, and nothing that a job says can become an option. [Images] fetches images, each once however
// many wait for it.
//
// A container is created first and started afterwards, by a client that stays with it and carries its output. It has
// the network of the instance, the folders that are mounted and no others, and the limits of its job; it is never
// restarted, and stays, ended, until it is removed.
package container

import (
	"context"

	"golang.org/x/sys/unix"

	"drover"
)

// Runtime runs containers. All methods may be called by several goroutines at once, end when their contexts do, and
// bring errors in the words of the runtime.
type Runtime interface {
	// Name is what people call it, and what Open takes.
	Name() string

	// Probe reports as which user a container must run so that the files it makes belong to this process's user. It
	// fails where the runtime does not work.
	Probe(ctx context.Context) (user string, err error)

	// Image looks for an image on the instance. found is false if there is none.
	Image(ctx context.Context, ref string) (image Image, found bool, err error)

	// Pull fetches an image. Its error is a *ImageError, unless the context ended it.
	Pull(ctx context.Context, ref string) error

	// Create makes a container, whose image must be there, and does not start it.
	Create(ctx context.Context, s Spec) error

	// Start is the program and arguments of a client that starts a created container, gives out its two streams as its
	// own, and ends when the container has.
	Start(name string) (program string, args []string)

	// Signal sends a signal to the first process of a running container.
	Signal(ctx context.Context, name string, sig unix.Signal) error

	// State says how a container is.
	State(ctx context.Context, name string) (State, error)

	// Remove ends a container and removes it. One that is not there is no error.
	Remove(ctx context.Context, name string) error

	// List names the containers, ended ones too, that bear all the labels.
	List(ctx context.Context, labels map[string]string) ([]string, error)
}

// Image is what matters of an image.
type Image struct {
	Entrypoint []string `json:"Entrypoint"`
	Cmd        []string `json:"Cmd"`
}

// Command is what the image runs if it is not told what to run; empty if it does not say.
func (i Image) Command() []string { return append(append([]string(nil), i.Entrypoint...), i.Cmd...) }

// Spec describes a container.
type Spec struct {
	Name    string            `json:"name"`
	Labels  map[string]string `json:"labels,omitempty"`
	Image   string            `json:"image"`
	Command []string          `json:"command"`       // in place of the image's entry point and its arguments
	Env     map[string]string `json:"env,omitempty"` // which the command must Unpack
	Dir     string            `json:"dir"`           // the working folder, in the container
	User    string            `json:"user"`          // as Probe has it
	Mounts  []Mount           `json:"mounts,omitempty"`
	Limits  drover.Resources  `json:"limits"` // of CPU and memory; 0: none
}

// Mount shows a file or folder of the instance in a container.
type Mount struct {
	Source   string `json:"source"`
	Target   string `json:"target"`
	ReadOnly bool   `json:"read_only,omitempty"`
}

// State is how a container is.
type State struct {
	Running   bool
	OOMKilled bool // the kernel ended a process in it that needed more memory than the container has
	ExitCode  int
	Error     string // why it could not be started
}
