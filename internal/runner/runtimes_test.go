//go:build containers

package runner_test

import (
	"archive/tar"
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// need skips the test if a program is not installed.
func need(t *testing.T, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("%s is not installed", p)
		}
	}
}

// host is a host with one working container runtime.
type host struct {
	client   string
	registry *registry
}

// run runs the runtime's client and returns its output.
func (h *host) run(t testing.TB, args ...string) string {
	t.Helper()
	out, err := exec.Command(h.client, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", h.client, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// background starts a program that ends with the test.
func background(t *testing.T, program string, args ...string) (log *bytes.Buffer) {
	log = new(bytes.Buffer)
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Signal(syscall.SIGTERM); cmd.Wait() })
	return log
}

// beginDocker starts a docker daemon.
func beginDocker(t *testing.T, r *registry) *host {
	need(t, "dockerd")
	dir, err := os.MkdirTemp("", "drover-docker-") // short: it holds sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// The daemon leaves a namespace mounted.
		syscall.Unmount(dir+"/exec/netns/default", syscall.MNT_DETACH)
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	writeFile(t, dir+"/daemon.json", "{}")
	t.Setenv("DOCKER_HOST", "unix://"+dir+"/sock")
	t.Setenv("DOCKER_CONFIG", dir)
	background(t, "dockerd", "--config-file", dir+"/daemon.json", "--data-root", dir+"/root", "--exec-root", dir+"/exec", "-p", dir+"/pid",
		"-H", "unix://"+dir+"/sock", "--bridge=none", "--iptables=false")
	h := &host{"docker", r}
	for deadline := time.Now().Add(patience); exec.Command("docker", "info").Run() != nil; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Skip("dockerd does not start here")
		}
	}
	return h
}

// beginPodman gives podman a store, and settings that let it run as root on hosts with control groups of either
// version.
func beginPodman(t *testing.T, r *registry) *host {
	need(t, "runc")
	dir := t.TempDir()
	writeFile(t, dir+"/containers.conf", `
[containers]
default_ulimits = ["nofile=20000:20000", "nproc=32768:32768"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
`)
	writeFile(t, dir+"/storage.conf", fmt.Sprintf("[storage]\ndriver = \"overlay\"\nrunroot = %q\ngraphroot = %q\n", dir+"/run", dir+"/root"))
	writeFile(t, dir+"/registries.conf", fmt.Sprintf("[[registry]]\nlocation = %q\ninsecure = true\n", r.addr))
	t.Setenv("CONTAINERS_CONF", dir+"/containers.conf")
	t.Setenv("CONTAINERS_STORAGE_CONF", dir+"/storage.conf")
	t.Setenv("CONTAINERS_REGISTRIES_CONF", dir+"/registries.conf")
	t.Setenv("DOCKER_HOST", "unix://"+dir+"/none") // no docker here
	h := &host{"podman", r}
	t.Cleanup(func() {
		exec.Command("podman", "rm", "--all", "--force").Run()
		exec.Command("podman", "rmi", "--all", "--force").Run()
		syscall.Unmount(dir+"/root/overlay", syscall.MNT_DETACH)
	})
	if out, err := exec.Command("podman", "info").CombinedOutput(); err != nil {
		t.Skipf("podman does not work here: %s", out)
	}
	return h
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// registry is a registry of images behind a proxy that counts, delays and refuses.
type registry struct {
	addr  string
	blobs atomic.Int64                  // layers and configurations fetched
	gate  atomic.Pointer[chan struct{}] // if not nil, blobs wait until it is closed
}

func beginRegistry(t *testing.T) *registry {
	dir := t.TempDir()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	writeFile(t, dir+"/config.yml", fmt.Sprintf("version: 0.1\nstorage: {filesystem: {rootdirectory: %s}}\nhttp: {addr: %q}\n", dir, addr))
	background(t, "docker-registry", "serve", dir+"/config.yml")
	until(t, "the registry answers", func() bool {
		resp, err := http.Get("http://" + addr + "/v2/")
		if err == nil {
			resp.Body.Close()
		}
		return err == nil
	})
	r := &registry{}
	behind := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: addr})
	direct := behind.Director
	behind.Director = func(req *http.Request) { host := req.Host; direct(req); req.Host = host } // locations name the proxy
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { r.serve(behind, w, req) }))
	t.Cleanup(server.Close)
	r.addr = strings.TrimPrefix(server.URL, "http://")
	return r
}

func (r *registry) serve(behind http.Handler, w http.ResponseWriter, req *http.Request) {
	switch {
	case strings.HasPrefix(req.URL.Path, "/v2/private/"):
		w.Header().Set("WWW-Authenticate", `Basic realm="private"`)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"errors": [{"code": "UNAUTHORIZED", "message": "authentication required"}]}`)
		return
	case strings.HasPrefix(req.URL.Path, "/v2/broken/"):
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	case req.Method == http.MethodGet && strings.Contains(req.URL.Path, "/blobs/"):
		r.blobs.Add(1)
		if gate := r.gate.Load(); gate != nil {
			select {
			case <-*gate:
			case <-req.Context().Done():
			}
		}
	}
	behind.ServeHTTP(w, req)
}

// close makes blobs wait until the returned function is called.
func (r *registry) close() (open func()) {
	gate := make(chan struct{})
	r.gate.Store(&gate)
	return sync.OnceFunc(func() { r.gate.Store(nil); close(gate) })
}

// image returns the name of an image in the registry.
func (h *host) image(name string) string { return h.registry.addr + "/" + name }

// publish puts busybox into the registry: as plain:1, as greeter:1 with its own command, and as wrapped:1 with an
// entrypoint that fails. It leaves none of them on the host.
func (h *host) publish(t *testing.T) {
	layer := filepath.Join(t.TempDir(), "layer.tar")
	writeFile(t, layer, string(busybox(t)))
	for name, changes := range map[string][]string{
		"plain:1":   nil,
		"greeter:1": {"--change", `ENTRYPOINT ["/bin/echo", "hello"]`, "--change", `CMD ["there"]`},
		"wrapped:1": {"--change", `ENTRYPOINT ["/bin/false"]`},
	} {
		h.run(t, append(append([]string{"import"}, changes...), layer, h.image(name))...)
		h.run(t, "push", h.image(name))
		h.run(t, "rmi", h.image(name))
	}
}

// forget removes an image from the host.
func (h *host) forget(t testing.TB, name string) {
	exec.Command(h.client, "rmi", "--force", h.image(name)).Run() // it may not exist
}

// busybox returns a file system with only busybox in it.
func busybox(t *testing.T) []byte {
	path, err := exec.LookPath("busybox")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	add := func(h tar.Header, content []byte) {
		h.Size = int64(len(content))
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		w.Write(content)
	}
	add(tar.Header{Name: "tmp/", Typeflag: tar.TypeDir, Mode: 0o1777}, nil)
	add(tar.Header{Name: "bin/busybox", Mode: 0o755}, program)
	for _, applet := range []string{"sh", "sleep", "cat", "echo", "env", "id", "head", "tail", "setsid", "false", "true", "nc", "ls", "mkdir"} {
		add(tar.Header{Name: "bin/" + applet, Typeflag: tar.TypeSymlink, Linkname: "busybox"}, nil)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return layer.Bytes()
}
