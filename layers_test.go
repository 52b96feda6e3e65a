package drover_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// layer is a package's purpose and its permitted imports.
type layer struct {
	does    string   // its responsibility, in one line
	ours    []string // packages of this module, the root being "."
	outside []string // modules; all packages may import the standard library, except for bans
}

// all stands for every package of this module.
const all = "*"

// layers is the architecture. Imports point down: of this module, a package may import only what its line names. Tests
// may import anything, since nothing can depend on them.
var layers = map[string]layer{
	".": {does: "jobs, attempts, instances, offerings, their states, kinds of error, money, sizes"},
	"driver": {
		does: "the contract that a cloud must meet",
		ours: []string{"."},
	},
	"driver/kit": {
		does:    "what drivers share: error tables, rates, configuration, offerings, tags, user data",
		ours:    []string{".", "driver", "internal/diskcache", "internal/logkey"},
		outside: []string{"golang.org/x/crypto"},
	},
	"driver/middleware": {
		does: "decorators for every cloud: images, templates, rate limits, dry runs, metrics, one fleet's view",
		ours: []string{".", "driver", "driver/kit", "internal/logkey"},
	},
	"driver/drivertest": {
		does:    "the conformance suite, for go test and for a real account",
		ours:    []string{"internal/backoff", ".", "driver", "driver/kit", "driver/middleware", "internal/config"},
		outside: []string{"golang.org/x/crypto"},
	},
	"driver/azure": {
		does:    "Microsoft Azure: one call per virtual machine, late failures",
		ours:    []string{".", "driver", "driver/kit", "internal/diskcache", "internal/logkey"},
		outside: []string{"github.com/Azure/azure-sdk-for-go/sdk/azcore", "github.com/Azure/azure-sdk-for-go/sdk/azidentity"},
	},
	"driver/external": {
		does: "a cloud driven by a user's program",
		ours: []string{".", "driver", "driver/kit", "internal/logkey"},
	},
	"driver/local": {
		does:    "a cloud on this host: each instance a process tree with an SSH server",
		ours:    []string{"internal/atomicfile", "internal/backoff", "internal/folderlock", "internal/processes", ".", "driver", "driver/kit", "driver/middleware", "internal/logkey"},
		outside: []string{"github.com/gliderlabs/ssh", "golang.org/x/crypto", "golang.org/x/sys"},
	},
	"driver/ec2": {
		does:    "Amazon EC2: instant fleets, planted host keys, cached prices",
		ours:    []string{".", "driver", "driver/kit", "internal/diskcache", "internal/logkey"},
		outside: []string{"github.com/aws/aws-sdk-go-v2", "github.com/aws/smithy-go"},
	},
	"driver/gce": {
		does:    "Google Compute Engine: short waits for operations, tags as labels, cached prices",
		ours:    []string{".", "driver", "driver/kit", "internal/diskcache"},
		outside: []string{"cloud.google.com/go/auth"},
	},
	"driver/openstack": {
		does:    "OpenStack: Nova servers, and lists that name unresponsive parts",
		ours:    []string{".", "driver", "driver/kit", "internal/diskcache", "internal/logkey"},
		outside: []string{"github.com/gophercloud/gophercloud/v2"},
	},
	"internal/webhook": {
		does: "signed messages, posted to public addresses only",
		ours: []string{"."},
	},
	"internal/diskcache": {
		does: "answers of a cloud, cached on disk",
		ours: []string{"internal/atomicfile", "internal/logkey"},
	},
	"driver/hetzner": {
		does:    "Hetzner Cloud: servers, with tags as labels",
		ours:    []string{".", "driver", "driver/kit"},
		outside: []string{"github.com/hetznercloud/hcloud-go/v2"},
	},
	"driver/digitalocean": {
		does:    "DigitalOcean: Droplets, tags and login keys",
		ours:    []string{".", "driver", "driver/kit"},
		outside: []string{"github.com/digitalocean/godo"},
	},
	"internal/logkey": {does: "the keys of the structured log"},
	"internal/telemetry": {
		does:    "metrics and traces; the only importer of Prometheus and OpenTelemetry",
		ours:    []string{".", "internal/engine", "internal/logkey"}, // engine: for the values that it counts
		outside: []string{"github.com/go-logr/logr", "github.com/prometheus/client_golang", "go.opentelemetry.io/otel"},
	},
	"internal/wire": {
		does: "the messages between controller and runner, their limits and encoding",
		ours: []string{"."},
	},
	"internal/backoff": {does: "cancellable waits and delays between retries"},
	"internal/folderlock": {
		does:    "locks folders against other processes",
		ours:    []string{"internal/backoff"},
		outside: []string{"golang.org/x/sys"},
	},
	"internal/processes": {
		does:    "the processes of this host: lists them, finds their owners, ends them",
		ours:    []string{"internal/backoff"},
		outside: []string{"golang.org/x/sys"},
	},
	"internal/atomicfile": {does: "replaces files atomically"},
	"internal/deadman": {
		does: "the dead-man switch: its first-boot script and the runner's part",
		ours: []string{"internal/backoff"},
	},
	"internal/notice": {
		does: "watches for a cloud's interruption notices, on the instance",
		ours: []string{".", "internal/backoff"},
	},
	"internal/runtimes": {does: "expected run times, learned from ended jobs; pure"},
	"internal/pack": {
		does: "the solver: the cheapest offerings for a set of jobs; pure",
		ours: []string{".", "internal/runtimes"},
	},
	"internal/billing": {
		does: "splits an instance's bill into jobs, boot, idle and waste; pure",
		ours: []string{"."},
	},
	"internal/engine/verdict": {
		does: "why something waits, stops or goes, in a form that decisions can read; pure",
		ours: []string{"."},
	},
	"internal/engine/timers": {
		does: "timers by key: when each is due next, and when to try again; pure",
		ours: []string{"."},
	},
	"internal/engine/budget": {
		does: "what is spent and promised in each window of each budget, and what would exceed a limit; pure",
		ours: []string{".", "internal/engine/timers", "internal/billing"},
	},
	"internal/engine/market": {
		does: "what clouds offer, which of it is blocked or throttled, and limits within a cloud; pure",
		ours: []string{".", "internal/engine/timers", "internal/engine/verdict"},
	},
	"internal/engine/queue": {
		does: "the jobs that are not final: elements, classes, gangs, dependencies, retries; pure",
		ours: []string{".", "internal/engine/timers", "internal/engine/verdict"},
	},
	"internal/engine/fleet": {
		does: "the instances that are not gone: their load, reservations and owners, an index of them, what lists prove; pure",
		ours: []string{".", "internal/engine/queue", "internal/engine/timers", "internal/engine/verdict", "internal/runtimes"},
	},
	"internal/engine/forecast": {
		does: "how long things take: learned boot times, run times and idle gaps",
		ours: []string{".", "internal/runtimes"},
	},
	"internal/engine/pool": {
		does: "how many instances each pool should have in each zone, and which should go; pure",
		ours: []string{"."},
	},
	"internal/engine": {
		does: "the decisions: lifecycle, placing, planning, backoff, explanations; pure",
		ours: []string{".", "internal/engine/budget", "internal/engine/fleet", "internal/engine/forecast", "internal/engine/market", "internal/engine/pool", "internal/engine/queue", "internal/engine/timers", "internal/engine/verdict", "internal/billing", "internal/runtimes"},
	},
	"internal/loop": {
		does: "event → decision → commit → release; store and outside world are passed in",
		ours: []string{".", "internal/engine"},
	},
	"internal/record": {
		does: "the flight recorder: segments that begin with a State",
		ours: []string{".", "internal/engine", "internal/logkey"},
	},
	"internal/replay": {
		does: "repeats recorded decisions, up to a time or a subject",
		ours: []string{".", "internal/engine", "internal/record"},
	},
	"internal/remote": {
		does:    "the controller's end of an instance: SSH, host keys, runner deployment, the control stream",
		ours:    []string{".", "internal/wire"},
		outside: []string{"golang.org/x/crypto", "golang.org/x/sync"},
	},
	"internal/cgroup": {
		does:    "CPU and memory limits, by control groups",
		ours:    []string{"internal/backoff", "."},
		outside: []string{"golang.org/x/sys"},
	},
	"internal/container": {
		does:    "containers and images, by docker or podman",
		ours:    []string{"."},
		outside: []string{"golang.org/x/sys"},
	},
	"internal/runner": {
		does:    "the instance's end: supervises attempts and outlives connections",
		ours:    []string{"internal/atomicfile", ".", "internal/cgroup", "internal/container", "internal/deadman", "internal/notice", "internal/backoff", "internal/processes", "internal/wire"},
		outside: []string{"github.com/bmatcuk/doublestar/v4", "golang.org/x/sys"},
	},
	"internal/store": {
		does:    "the records, in SQLite",
		ours:    []string{"internal/atomicfile", ".", "internal/engine", "internal/engine/forecast", "internal/billing", "internal/webhook"}, // for the values that it keeps
		outside: []string{"github.com/pressly/goose/v3", "modernc.org/sqlite"},
	},
	"internal/blob": {
		does:    "inputs by content, logs and outputs, in folders",
		ours:    []string{"internal/folderlock", "."},
		outside: []string{"golang.org/x/sys"},
	},
	"internal/control": {
		does: "carries out effects in the real world and brings results back as events; owns every goroutine",
		ours: []string{".", "driver", "driver/middleware", "internal/backoff", "internal/blob", "internal/deadman", "internal/engine", "internal/logkey", "internal/loop", "internal/pack",
			"internal/record", "internal/remote", "internal/store", "internal/webhook", "internal/wire"},
		outside: []string{"golang.org/x/crypto"},
	},
	"internal/eventqueue": {
		does: "the order of events in simulated time",
		ours: []string{"."},
	},
	"internal/simtest": {
		does: "a simulated world with bad luck around the real engine and loop",
		ours: []string{".", "driver", "internal/eventqueue", "internal/engine", "internal/engine/fleet", "internal/engine/pool", "internal/billing", "internal/loop", "internal/pack", "internal/record"},
	},
	"internal/trace": {
		does: "reads recorded workloads and price lists",
		ours: []string{"."},
	},
	"internal/simulate": {
		does: "runs a workload under a configuration, or under older policies",
		ours: []string{".", "internal/eventqueue", "internal/engine", "internal/engine/pool", "internal/loop", "internal/pack", "internal/trace"},
	},
	"internal/recorded": {
		does: "a controller's records as a workload to simulate",
		ours: []string{".", "internal/simulate", "internal/trace"},
	},
	"internal/chart": {does: "line charts as SVG"},
	"internal/config": {
		does:    "configuration and batch files, their errors and schema",
		ours:    []string{"."},
		outside: []string{"github.com/bmatcuk/doublestar/v4", "github.com/goccy/go-yaml", "github.com/google/jsonschema-go", "github.com/robfig/cron/v3"},
	},
	"internal/configimport": {
		does:    "converts other programs' configurations",
		ours:    []string{"."},
		outside: []string{"github.com/goccy/go-yaml"},
	},
	"internal/httpapi": {
		does:    "the HTTP API: a handler that serves any service, and a client that is one",
		ours:    []string{"internal/backoff", ".", "internal/config", "internal/logkey"},
		outside: []string{"github.com/danielgtaylor/huma/v2", "golang.org/x/time"},
	},
	"internal/externalgrpc": {
		does:    "serves a Kubernetes autoscaler, whose node groups are pools",
		ours:    []string{".", "internal/externalgrpc/protos"},
		outside: []string{"google.golang.org/grpc", "google.golang.org/protobuf"},
	},
	"internal/externalgrpc/protos": {
		does:    "the autoscaler's protocol, generated",
		outside: []string{"google.golang.org/grpc", "google.golang.org/protobuf"},
	},
	"internal/kubenodes": {
		does:    "manages node groups' nodes in their cluster: tokens, taints, evictions, remains of deleted nodes",
		ours:    []string{".", "internal/logkey"},
		outside: []string{"github.com/goccy/go-yaml"},
	},
	"internal/kubetest": {
		does:    "a Kubernetes cluster in memory, and an autoscaler that makes the real one's requests; only for tests",
		ours:    []string{".", "internal/externalgrpc/protos"},
		outside: []string{"google.golang.org/grpc", "google.golang.org/protobuf"},
	},
	"internal/web": {
		does: "the dashboard: pages of any service, rendered on the server and updated live",
		ours: []string{"internal/backoff", ".", "internal/logkey"},
	},
	"internal/benchfleet": {
		does: "a controller and a fleet of SSH servers in one process, to measure dispatching",
		ours: []string{".", "driver", "internal/blob", "internal/control", "internal/engine", "internal/record", "internal/remote", "internal/store",
			"internal/wire"},
		outside: []string{"golang.org/x/crypto"},
	},
	"internal/daemon": {
		does: "a running controller: clouds, folders, API, configuration reloads",
		ours: []string{"internal/atomicfile", "internal/backoff", ".", "driver", "driver/kit", "driver/middleware", "internal/blob", "internal/config", "internal/configimport", "internal/control", "internal/engine", "internal/engine/pool", "internal/externalgrpc", "internal/httpapi", "internal/human", "internal/kubenodes", "internal/logkey", "internal/record",
			"internal/remote", "internal/store", "internal/telemetry", "internal/web", "internal/webhook", "internal/wire"},
	},
	"internal/preview": {
		does: "what a batch would rent and cost, by the engine's own decisions",
		ours: []string{".", "internal/config", "internal/engine", "internal/pack", "internal/simulate", "internal/trace"},
	},
	"internal/gc": {
		does: "finds orphaned instances, and destroys them on request",
		ours: []string{"internal/backoff", ".", "driver", "driver/middleware", "internal/config", "internal/control", "internal/daemon", "internal/human", "internal/remote", "internal/store"},
	},
	"internal/human": {
		does: "formats times, spans, money, counts and lists for people",
		ours: []string{"."},
	},
	"internal/cli": {
		does:    "the commands, a file each",
		ours:    []string{all},
		outside: []string{"github.com/bmatcuk/doublestar/v4", "github.com/goccy/go-yaml", "github.com/spf13/cobra", "github.com/spf13/pflag", "github.com/vbauerster/mpb/v8", "charm.land/bubbletea/v2", "github.com/charmbracelet/colorprofile", "github.com/mattn/go-runewidth", "golang.org/x/sys", "golang.org/x/term"},
	},
	"cmd/drover": {
		does: "the program: main, the list of drivers, and the embedded runners",
		ours: []string{"driver/azure", "driver/digitalocean", "driver/ec2", "driver/external", "driver/gce", "driver/hetzner", "driver/local", "driver/openstack", "internal/cli", "internal/daemon"},
	},
	"cmd/drover-runner": {
		does: "the small program that runs on instances",
		ours: []string{".", "internal/runner"},
	},
	"cmd/drover-bench": {
		does:    "measures a built drover: latencies, jobs per second, CPU time",
		outside: []string{"golang.org/x/sys"},
	},
	"cmd/drover-bench-fleet": {
		does: "measures dispatching to a fleet in one process",
		ours: []string{"internal/benchfleet"},
	},
	"examples/mandelbrot": {does: "the example's program, in the standard library alone"},
}

// bans are packages of the standard library that a layer must not import, with the reason.
var bans = map[string]map[string]string{
	".": {
		"net/http":     "these types do not depend on how they are sent",
		"database/sql": "these types do not depend on how they are stored",
	},
}

func TestLayers(t *testing.T) {
	found := packages(t)
	t.Run("every package has a line in the table", func(t *testing.T) {
		for dir := range found {
			if _, ok := layers[dir]; !ok {
				t.Errorf("package %s has no line in the table in layers_test.go. Add one that says what it does and what it may import, and name it in docs/architecture.md", dir)
			}
		}
	})
	t.Run("every line of the table has a package", func(t *testing.T) {
		for dir := range layers {
			if _, ok := found[dir]; !ok {
				t.Errorf("the table in layers_test.go has a line for %s, which does not exist. Remove the line", dir)
			}
		}
	})
	t.Run("packages import only what their line allows", func(t *testing.T) {
		for dir, imports := range found {
			for _, path := range imports {
				if why := forbidden(dir, path); why != "" {
					t.Errorf("package %s imports %q: %s", dir, path, why)
				}
			}
		}
	})
	t.Run("docs/architecture.md names every package", func(t *testing.T) {
		text := read(t, "docs/architecture.md")
		for dir := range layers {
			if name := strings.Replace("`"+dir+"`", "`.`", "`drover`", 1); !strings.Contains(text, name) {
				t.Errorf("docs/architecture.md does not name %s", name)
			}
		}
	})
}

// packages lists the imports of each package of the module, except for its tests.
func packages(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || strings.HasPrefix(d.Name(), "_") || d.Name() == "testdata"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		imports, err := importsOf(name)
		dir := path.Dir(filepath.ToSlash(name))
		found[dir] = append(found[dir], imports...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func importsOf(file string) (paths []string, err error) {
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	for _, spec := range f.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// forbidden returns why the package in dir may not import the path and what to do about it; empty if it may.
func forbidden(dir, path string) string {
	l := layers[dir]
	if why := bans[dir][path]; why != "" {
		return why + ". Move the code that needs it to the package responsible for that"
	}
	if path == "drover" || strings.HasPrefix(path, "drover/") {
		ours := strings.TrimPrefix(strings.TrimPrefix(path, "drover"), "/")
		if ours == "" {
			ours = "."
		}
		if slices.Contains(l.ours, all) || slices.Contains(l.ours, ours) {
			return ""
		}
		return "of our own packages, its line in layers_test.go allows only " + strings.Join(l.ours, ", ") +
			". Declare the interface it needs where it is used and pass an implementation in; to change the architecture itself, change the table and docs/architecture.md in one commit"
	}
	if first, _, _ := strings.Cut(path, "/"); !strings.Contains(first, ".") {
		return ""
	}
	for _, module := range l.outside {
		if path == module || strings.HasPrefix(path, module+"/") {
			return ""
		}
	}
	return "no line in layers_test.go allows this module here. Use the standard library or the package that wraps the module; a new dependency needs a reason in docs/decisions.md"
}
