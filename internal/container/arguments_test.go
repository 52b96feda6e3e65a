package container

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"drover"
)

func TestCreateArgs(t *testing.T) {
	spec := Spec{
		Name: "drover-lab-1", Labels: map[string]string{"drover.fleet": "lab"}, Image: "busybox:1", Command: []string{"sh", "-c", "true"},
		Dir: "/work", User: "0:0", Mounts: []Mount{{Source: "/a", Target: "/b", ReadOnly: true}},
	}
	t.Run("a job's text is an option's value or follows the image", func(t *testing.T) {
		s := spec
		s.Command = []string{"--privileged", "--privileged", "--"}
		s.Env = map[string]string{"A": "--privileged\n"}
		args, err := createArgs(s)
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"--entrypoint=--privileged", "--", "docker.io/library/busybox:1", "--privileged", "--"}
		if got := args[len(args)-len(want):]; !cmp.Equal(got, want) {
			t.Errorf("got %q", got)
		}
		if options := args[:len(args)-len(want)]; slices.Contains(options, "--privileged") || slices.ContainsFunc(options, func(a string) bool { return strings.Contains(a, "privileged") }) {
			t.Errorf("got %q", options)
		}
	})
	t.Run("the job's limits apply, without swap", func(t *testing.T) {
		want := []string{"--cpus=0.5", "--memory=67108864", "--memory-swap=67108864"}
		if got := limitArgs(drover.Resources{CPU: 500, Memory: 64 * drover.MiB}); !cmp.Equal(got, want) {
			t.Errorf("got %q", got)
		}
	})
	t.Run("without limits there are no options", func(t *testing.T) {
		if got := limitArgs(drover.Resources{}); len(got) > 0 {
			t.Errorf("got %q", got)
		}
	})
	t.Run("a container has enough memory to start its command", func(t *testing.T) {
		if got := limitArgs(drover.Resources{Memory: drover.MiB}); got[0] != "--memory=33554432" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("a folder with a comma or a quote in its name can be mounted", func(t *testing.T) {
		got, err := mountValue(Mount{Source: `/a,"b`, Target: "/c"})
		if want := `type=bind,"source=/a,""b",target=/c`; err != nil || got != want {
			t.Errorf("got %s, %v", got, err)
		}
	})
	t.Run("a folder with a line break in its name cannot be mounted", func(t *testing.T) {
		if _, err := mountValue(Mount{Source: "/a\nb", Target: "/c"}); err == nil {
			t.Error("it was accepted")
		}
	})
}

func TestEnvironment(t *testing.T) {
	env := map[string]string{"HOME": "/h", "DOCKER_HOST": "x", "EMPTY": "", "TWO": "a\nb", "QUOTED": `"a`, "LONG": strings.Repeat("x", 40_000)}
	t.Run("a value that fits in a line is passed as a line, which does not affect the client", func(t *testing.T) {
		if got, want := lines(env), "DOCKER_HOST=x\nEMPTY=\nHOME=/h\n"; got != want {
			t.Errorf("got %q", got)
		}
	})
	t.Run("other values pass through the client, under names that mean nothing to it", func(t *testing.T) {
		if got, want := unlinedNames(env), []string{"LONG", "QUOTED", "TWO"}; !cmp.Equal(got, want) {
			t.Errorf("got %q", got)
		}
		if got := unlined(env)[2]; got != "DROVER_UNLINED_2=TWO=a\nb" {
			t.Errorf("got %q", got)
		}
		if got, want := Unpack(append(unlined(env)[1:], "A=b")), []string{`QUOTED="a`, "TWO=a\nb", "A=b"}; !cmp.Equal(got, want) {
			t.Errorf("got %q", got)
		}
	})
	t.Run("an invalid name is refused", func(t *testing.T) {
		for _, name := range []string{"", "#a", "a b", "-a", "a\n"} {
			if CheckEnv(map[string]string{name: ""}) == nil {
				t.Errorf("%q is accepted", name)
			}
		}
	})
}

func TestFull(t *testing.T) {
	digest := "@sha256:" + strings.Repeat("0", 64)
	for ref, want := range map[string]string{
		"busybox":                       "docker.io/library/busybox",
		"busybox:1.36":                  "docker.io/library/busybox:1.36",
		"me/tool:1":                     "docker.io/me/tool:1",
		"docker.io/library/busybox":     "docker.io/library/busybox",
		"localhost/tool":                "localhost/tool",
		"registry:5000/tool:1":          "registry:5000/tool:1",
		"ghcr.io/me/tool":               "ghcr.io/me/tool",
		"registry:5000/tool:1" + digest: "registry:5000/tool" + digest,
		"registry:5000/tool" + digest:   "registry:5000/tool" + digest,
		"busybox:1" + digest:            "docker.io/library/busybox" + digest,
	} {
		t.Run(ref+" means the same everywhere", func(t *testing.T) {
			if got := full(ref); got != want {
				t.Errorf("got %s", got)
			}
		})
	}
}
