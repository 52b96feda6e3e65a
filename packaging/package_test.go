//go:build packages

// Package packaging_test installs what make dist builds, in a container with systemd, and uses it as users would.
package packaging_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

var (
	dist   = flag.String("dist", "", "the `folder` of the packages")
	rootfs = flag.String("rootfs", "", "the `folder` of a Debian with systemd and Caddy, which stays unchanged")
)

// container is a booted Debian whose network is its own loopback.
type container struct {
	t    *testing.T
	name string
}

func boot(t *testing.T) *container {
	c := &container{t, "drover-packages"}
	podman := func(args ...string) ([]byte, error) { return exec.Command("podman", args...).CombinedOutput() }
	podman("rm", "--force", c.name)
	out, err := podman("run", "--detach", "--name", c.name, "--hostname", "controller", "--systemd=always", "--network", "none",
		"--add-host", "drover.example.org:127.0.0.1", "--volume", *dist+":/dist:ro", "--rootfs", *rootfs+":O", "/sbin/init")
	if err != nil {
		t.Fatalf("booting a container: %v\n%s", err, out)
	}
	t.Cleanup(func() {
		if t.Failed() {
			log, _ := podman("exec", c.name, "journalctl", "--no-pager", "--lines", "30", "--unit", "drover")
			t.Logf("%s", log)
		}
		podman("rm", "--force", "--time", "0", c.name)
	})
	c.eventually("systemctl is-system-running", "running")
	return c
}

// run runs a shell script as a user. The script must succeed.
func (c *container) run(user, script string) string {
	c.t.Helper()
	out, err := c.try(user, script)
	if err != nil {
		c.t.Fatalf("%s\n%s%v", script, out, err)
	}
	return out
}

func (c *container) try(user, script string) (string, error) {
	cmd := exec.Command("podman", "exec", "--user", user, "--env", "TERM=dumb", c.name, "timeout", "120", "sh", "-ec", script)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// says runs a script as root. Its output must contain want.
func (c *container) says(script, want string) {
	c.t.Helper()
	if out := c.run("root", script); !strings.Contains(out, want) {
		c.t.Fatalf("%s prints\n%s\nwant %q in it", script, out, want)
	}
}

func (c *container) eventually(script, want string) {
	c.t.Helper()
	var out string
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if out, _ = c.try("root", script); strings.Contains(out, want) {
			return
		}
	}
	c.t.Fatalf("%s prints\n%s\nwant %q in it", script, out, want)
}

// TestDeb installs the deb, starts the service, submits over TLS through the documented proxy, restarts the service,
// installs the deb again, and removes it.
// covers D23
func TestDeb(t *testing.T) {
	c := boot(t)
	c.run("root", "dpkg --install /dist/drover_*.deb; useradd --create-home ada")
	c.says("ls /usr/share/man/man1/drover-submit.1.gz /usr/share/bash-completion/completions/drover && drover version", "drover")
	c.says("systemctl start drover; systemctl is-active drover || true", "inactive") // there is no configuration yet

	c.run("root", `sed 's/^# url:/url:/' /usr/share/doc/drover/examples/drover.yaml >/etc/drover/drover.yaml
		sed 's/^drover.example.org {/&\n\ttls internal/' /usr/share/doc/drover/examples/Caddyfile >/etc/caddy/Caddyfile
		systemctl enable --now drover
		systemctl restart caddy
		drover -c /etc/drover/drover.yaml doctor --wait 20s
		drover -c /etc/drover/drover.yaml token create --user ada --role submit >/home/ada/token
		chown ada /home/ada/token; chmod 600 /home/ada/token`)
	c.eventually(`cp /var/lib/caddy/.local/share/caddy/pki/authorities/local/root.crt /usr/local/share/ca-certificates/caddy.crt && update-ca-certificates && echo trusted`, "trusted")
	const ada = "export DROVER_SERVER=https://drover.example.org DROVER_TOKEN=$(cat ~/token) HOME=/home/ada; cd; "
	if out := c.run("ada", ada+"drover submit --wait /usr/share/doc/drover/examples/hello.yaml"); !strings.Contains(out, "20 succeeded") {
		t.Errorf("the batch ends with\n%s", out)
	}
	if out := c.run("ada", ada+"drover submit --follow --name slow -- sh -c 'echo one; sleep 1; echo two'"); !strings.Contains(out, "one\ntwo\n") {
		t.Errorf("through the proxy, --follow prints\n%s", out)
	}

	// A restart and a reinstallation leave a running job alone.
	c.run("ada", ada+"drover submit --name long -- sleep 6")
	c.eventually("drover -c /etc/drover/drover.yaml jobs --state running -o name", "3")
	c.run("root", "systemctl restart drover && dpkg --install /dist/drover_*.deb && systemctl is-active drover")
	if out := c.run("ada", ada+"drover wait 3; drover jobs 3 -o json"); !strings.Contains(out, `"number":1,`) || strings.Contains(out, `"number":2,`) || !strings.Contains(out, `"state":"succeeded"`) {
		t.Errorf("after a restart the job is\n%s", out)
	}
	c.says("stat -c %U:%a /var/lib/drover /var/lib/drover/drover.d", "drover:700\ndrover:700\n")
	c.says("systemd-analyze security --threshold=30 drover", "OK")

	c.run("root", "dpkg --remove drover")
	c.says("systemctl is-active drover 2>&1 || true", "inactive")
	c.says("ls /var/lib/drover /usr/bin/drover 2>&1 || true", "drover.db")
	c.says("ls /usr/bin/drover 2>&1 || true", "No such file")
}

// TestImage starts a controller from the image, as the image's user.
// covers D23
func TestImage(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(*dist, "*-linux-"+runtime.GOARCH+".oci.tar"))
	if err != nil || len(files) != 1 {
		t.Fatalf("images in %s: %v, %v", *dist, files, err)
	}
	out, err := exec.Command("podman", "load", "--quiet", "--input", files[0]).CombinedOutput()
	if err != nil {
		t.Fatalf("loading the image: %v\n%s", err, out)
	}
	_, image, _ := strings.Cut(strings.TrimSpace(string(out)), ": ")
	t.Cleanup(func() { exec.Command("podman", "rmi", "--force", image).Run() })
	for _, c := range []struct{ args, want string }{
		{"image inspect --format {{.Config.User}} " + image, "65532:65532"},
		{"run --rm --network none " + image + " version", "drover"},
	} {
		if out, _ := exec.Command("podman", strings.Fields(c.args)...).CombinedOutput(); !strings.Contains(string(out), c.want) {
			t.Errorf("podman %s prints\n%s\nwant %q in it", c.args, out, c.want)
		}
	}
	config := filepath.Join(t.TempDir(), "drover.yaml")
	if err := os.WriteFile(config, []byte("version: 1\nfleet: lab\nlisten: 127.0.0.1:0\nstate: sqlite:/var/lib/drover/drover.db\n"+
		"clouds: {here: {driver: local, types: [{name: small, vcpus: 1, memory: 1Gi}]}}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	const name = "drover-image"
	t.Cleanup(func() { exec.Command("podman", "rm", "--force", "--time", "0", name).Run() })
	out, err = exec.Command("podman", "run", "--detach", "--name", name, "--network", "none", "--volume", config+":/etc/drover/drover.yaml:ro", image).CombinedOutput()
	if err != nil {
		t.Fatalf("starting a controller: %v\n%s", err, out)
	}
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(200 * time.Millisecond) {
		log, _ := exec.Command("podman", "logs", name).CombinedOutput()
		if strings.Contains(string(log), `"msg":"serving"`) {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the controller did not start to serve; its log is\n%s", log)
		}
	}
}
