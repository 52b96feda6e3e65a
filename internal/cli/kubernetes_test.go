package cli

import (
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"drover/internal/kubetest"
)

// manifestPlace returns a place with a node group, and the certificates of both sides.
func manifestPlace(t *testing.T, listen string) (p *place, authority *kubetest.Authority, flags []string) {
	t.Helper()
	p, authority = newPlace(t), kubetest.NewAuthority(t)
	serverCert, serverKey := authority.Issue("server")
	cert, key := authority.Issue("client")
	p.write("kubeconfig", "")
	p.write("drover.yaml", fmt.Sprintf(`version: 1
fleet: lab
clouds: {here: {driver: local}}
pools: {workers: {login: none, zones: [local], kubernetes: {max: 3}}}
kubernetes: {listen: "%s", kubeconfig: kubeconfig, join_timeout: 7m, tls: {cert: %s, key: %s, client_ca: %s}}
`, listen, serverCert, serverKey, authority.File))
	return p, authority, []string{"kubernetes", "manifests", "-c", "drover.yaml", "--cert", cert, "--key", key, "--ca", authority.File}
}

// manifest has the parts of the printed objects that the tests read.
type manifest struct {
	Kind     string                                   `yaml:"kind"`
	Meta     struct{ Name, Namespace string }         `yaml:"metadata"`
	Data     map[string]string                        `yaml:"data"`
	Text     map[string]string                        `yaml:"stringData"`
	Role     struct{ Kind, Name string }              `yaml:"roleRef"`
	Subjects []struct{ Kind, Name, Namespace string } `yaml:"subjects"`
	Spec     struct {
		Template struct {
			Spec struct {
				Account  string `yaml:"serviceAccountName"`
				Security struct {
					User  int `yaml:"runAsUser"`
					Group int `yaml:"fsGroup"`
				} `yaml:"securityContext"`
				Selector   map[string]string `yaml:"nodeSelector"`
				Affinity   yaml.MapSlice
				Containers []struct {
					Image   string
					Command []string
					Mounts  []struct {
						Name      string
						MountPath string `yaml:"mountPath"`
					} `yaml:"volumeMounts"`
				}
				Volumes []struct {
					Name   string
					Secret struct {
						Name string `yaml:"secretName"`
						Mode int    `yaml:"defaultMode"`
					}
				}
			}
		}
	} `yaml:"spec"`
}

func TestManifests(t *testing.T) {
	p, authority, flags := manifestPlace(t, "127.0.0.1:8086")
	r := p.run(flags...)
	if r.code() != 0 {
		t.Fatalf("exit code %d: %s", r.code(), r.err.tail())
	}
	objects, names := map[string]manifest{}, []string{}
	for text := range strings.SplitSeq(r.out.String(), "\n---\n") {
		var m manifest
		if err := yaml.Unmarshal([]byte(text), &m); err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if m.Kind == "" || m.Meta.Name == "" {
			t.Errorf("an object without kind or name:\n%s", text)
		}
		name := m.Kind + "/" + m.Meta.Name
		objects[name], names = m, append(names, name)
	}
	t.Run("every bound role and every named account exists", func(t *testing.T) {
		for name, m := range objects {
			if m.Role.Name != "" && !slices.Contains(names, m.Role.Kind+"/"+m.Role.Name) {
				t.Errorf("%s binds %s %s, which does not exist", name, m.Role.Kind, m.Role.Name)
			}
			for _, s := range m.Subjects {
				if !slices.Contains(names, s.Kind+"/"+s.Name) || s.Namespace != "kube-system" {
					t.Errorf("%s binds %v, which does not exist", name, s)
				}
			}
		}
	})
	secret, pod := objects["Secret/cluster-autoscaler-drover"], objects["Deployment/cluster-autoscaler"].Spec.Template.Spec
	t.Run("the cloud-config names the controller and mounted files", func(t *testing.T) {
		var config struct{ Address, Cert, Key, Cacert string }
		if err := yaml.Unmarshal([]byte(secret.Text["cloud-config"]), &config); err != nil || config.Address != "127.0.0.1:8086" {
			t.Errorf("cloud-config is %q (%v)", secret.Text["cloud-config"], err)
		}
		mount := pod.Containers[0].Mounts[0]
		for _, file := range []string{config.Cert, config.Key, config.Cacert} {
			if name, ok := strings.CutPrefix(file, mount.MountPath+"/"); !ok || secret.Data[name] == "" {
				t.Errorf("cloud-config names %s, which is not mounted at %s", file, mount.MountPath)
			}
		}
		if v := pod.Volumes[0]; v.Name != mount.Name || v.Secret.Name != secret.Meta.Name {
			t.Errorf("%v mounts %v", mount, v)
		}
		ca, err := base64.StdEncoding.DecodeString(secret.Data["ca.crt"])
		want, _ := os.ReadFile(authority.File)
		if err != nil || string(ca) != string(want) {
			t.Errorf("ca.crt is %q (%v)", ca, err)
		}
	})
	t.Run("the autoscaler, which does not run as root, can read the secret", func(t *testing.T) {
		if mode := pod.Volumes[0].Secret.Mode; pod.Security.User == 0 || pod.Security.Group == 0 || mode != 0o440 {
			t.Errorf("user %d, group %d, mode %#o", pod.Security.User, pod.Security.Group, mode)
		}
	})
	t.Run("the autoscaler runs on any node that is not in a group, whoever provides the control plane", func(t *testing.T) {
		if text := fmt.Sprint(pod.Affinity); len(pod.Selector) > 0 || !strings.Contains(text, "drover/group") || !strings.Contains(text, "DoesNotExist") {
			t.Errorf("selector %v, affinity %s", pod.Selector, text)
		}
	})
	t.Run("the autoscaler has the flags that Drover needs", func(t *testing.T) {
		for _, flag := range []string{"--cloud-provider=externalgrpc", "--cloud-config=/etc/drover/cloud-config", "--enforce-node-group-min-size", "--max-node-provision-time=12m0s"} {
			if !slices.Contains(pod.Containers[0].Command, flag) {
				t.Errorf("%q lacks %s", pod.Containers[0].Command, flag)
			}
		}
		if pod.Account != "cluster-autoscaler" {
			t.Errorf("it runs as %s", pod.Account)
		}
	})
}

func TestUnworkableManifestsAreRefused(t *testing.T) {
	foreign := kubetest.NewAuthority(t)
	foreignCert, foreignKey := foreign.Issue("client")
	for says, c := range map[string]struct {
		listen string
		change []string // flags, the last of which wins
	}{
		"is not an address that a cluster can reach":                 {"0.0.0.0:8086", nil},
		"the controller would reject":                                {"127.0.0.1:8086", []string{"--cert", foreignCert, "--key", foreignKey}},
		"the autoscaler would reject the controller at 127.0.0.1:80": {"127.0.0.1:8086", []string{"--ca", foreign.File}},
		"the autoscaler would reject the controller at drover.org:1": {"127.0.0.1:8086", []string{"--address", "drover.org:1"}},
		"--address: ":        {"127.0.0.1:8086", []string{"--address", "drover.org"}},
		"--cert and --key: ": {"127.0.0.1:8086", []string{"--key", foreignKey}},
	} {
		t.Run(says, func(t *testing.T) {
			p, _, flags := manifestPlace(t, c.listen)
			r := p.run(append(flags, c.change...)...)
			if r.code() != 2 || !strings.Contains(r.err.String(), says) || r.out.String() != "" {
				t.Errorf("exit code %d: %s", r.code(), r.err.tail())
			}
		})
	}
	t.Run("a configuration without a node group", func(t *testing.T) {
		p, _, flags := manifestPlace(t, "127.0.0.1:8086")
		if err := os.WriteFile(filepath.Join(p.dir, "drover.yaml"), []byte("version: 1\nclouds: {here: {driver: local}}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if r := p.run(flags...); r.code() != 2 || !strings.Contains(r.err.String(), "no pool in the configuration is a node group") {
			t.Errorf("exit code %d: %s", r.code(), r.err.tail())
		}
	})
}

// TestTheKubernetesExample uses the local driver, which needs no account. The example's own script creates the
// certificates.
func TestTheKubernetesExample(t *testing.T) {
	p := newPlace(t)
	if err := os.CopyFS(p.dir, os.DirFS("../../examples/kubernetes")); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(p.dir, "drover.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	p.write("drover.yaml", strings.NewReplacer("{driver: hetzner}", "{driver: local, zones: [nbg1]}").Replace(string(text)))
	p.write("kubeconfig", "")
	if out, err := exec.Command(filepath.Join(p.dir, "certificates.sh"), "127.0.0.1").CombinedOutput(); err != nil {
		t.Fatalf("certificates.sh: %v\n%s", err, out)
	}
	if out, err := exec.Command("sh", "-n", filepath.Join(p.dir, "join.sh")).CombinedOutput(); err != nil {
		t.Fatalf("join.sh: %v\n%s", err, out)
	}
	if r := p.run("config", "check", "drover.yaml"); r.code() != 0 {
		t.Errorf("exit code %d: %s", r.code(), r.err.tail())
	}
	r := p.run("kubernetes", "manifests", "-c", "drover.yaml", "--cert", "autoscaler.crt", "--key", "autoscaler.key", "--ca", "ca.crt")
	if r.code() != 0 || !strings.Contains(r.out.String(), "address: 127.0.0.1:8086") {
		t.Errorf("exit code %d: %s", r.code(), r.err.tail())
	}
}
