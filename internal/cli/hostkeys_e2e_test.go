//go:build e2e

package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// sshdPlace returns a place with a cloud of real OpenSSH servers, whose host keys are proved in one of two ways.
func sshdPlace(t *testing.T, proof string) *place {
	t.Helper()
	for _, program := range []string{sshd, "jq", "ssh-keygen", "flock"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	if err := os.MkdirAll("/run/sshd", 0o755); err != nil && os.Geteuid() == 0 { // sshd needs it as root
		t.Fatal(err)
	}
	driver, err := filepath.Abs(filepath.Join("testdata", "sshd-driver.sh"))
	if err != nil {
		t.Fatal(err)
	}
	p := newPlace(t)
	pid := os.Getpid()
	p.write("drover.yaml", fmt.Sprintf(`version: 1
fleet: lab
clouds:
  there:
    driver: external
    command: [%s]
    options: {host_keys: %s, network: "127.%d.%d"}
    types: [{name: small, vcpus: 2, memory: 2Gi, disk: 8Gi, price: 0.36}]
`, driver, proof, 16+pid/256%200, pid%256))
	return p
}

// covers D6
func TestOpenSSHServersProveTheirHostKeys(t *testing.T) {
	for _, proof := range []string{"secret", "run"} {
		t.Run("by "+proof, func(t *testing.T) {
			p := sshdPlace(t, proof)
			p.write("batch.yaml", "jobs: [{name: one, command: [sh, -c, 'echo here']}]\n")
			if r := p.run("run", "-c", "drover.yaml", "batch.yaml"); r.code() != 0 {
				t.Errorf("the run exited with %d", r.code())
			}
		})
		t.Run("by "+proof+", in drover driver test", func(t *testing.T) {
			p := sshdPlace(t, proof)
			if r := p.run("driver", "test", "-c", "drover.yaml", "there", "--yes", "--only", "host key", "--wait", "30s"); r.code() != 0 {
				t.Errorf("it exited with %d: %s", r.code(), r.out.String())
			}
		})
	}
}
