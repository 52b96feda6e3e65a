package local_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"drover"
	"drover/driver"
	"drover/driver/drivertest"
	"drover/driver/local"
)

// The instances of these tests are processes of the test binary.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == local.Command {
		os.Exit(local.InstanceMain(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// world is a folder with a cloud whose instances end with the test.
type world struct {
	t      testing.TB
	folder string
	config string
	cloud  driver.Cloud
	key    ssh.Signer // the fleet's
}

func newWorld(t testing.TB, config string) *world {
	t.Helper()
	w := &world{t: t, folder: t.TempDir(), config: config, key: newSigner(t)}
	w.cloud = w.open("fleet")
	t.Cleanup(w.destroyAll)
	return w
}

func (w *world) open(fleet string) driver.Cloud {
	w.t.Helper()
	cloud, err := local.Open(w.t.Context(), w.options(fleet))
	drivertest.Must(w.t, err)
	return cloud
}

func (w *world) options(fleet string) driver.Options {
	w.t.Helper()
	return drivertest.Options(w.t, "here", "local", fleet, w.config, w.folder)
}

// destroyAll reads the folders, since a cloud that misbehaves may not list instances.
func (w *world) destroyAll() {
	w.config = ""
	cloud, err := local.Open(context.Background(), w.options("cleaner"))
	if err != nil {
		w.t.Error(err)
		return
	}
	paths, _ := filepath.Glob(filepath.Join(w.folder, "*", "*", "record.json"))
	for _, p := range paths {
		name := filepath.Dir(p)
		if err := cloud.Destroy(context.Background(), filepath.Base(filepath.Dir(name))+"."+filepath.Base(name)); err != nil {
			w.t.Error(err)
		}
	}
}

// request returns a request for the only default type.
func (w *world) request(name string) driver.CreateRequest {
	return driver.CreateRequest{
		Name:       name,
		Candidates: []driver.Candidate{{ProviderType: "local", Zone: "local", Market: drover.OnDemand}},
		Tags:       map[string]string{driver.TagFleet: "fleet", driver.TagName: name},
		HostKey:    drover.NewSecret(newHostKey(w.t)),
		PublicKey:  string(ssh.MarshalAuthorizedKey(w.key.PublicKey())),
	}
}

func (w *world) create(name string) driver.Instance {
	w.t.Helper()
	in, _, err := w.cloud.Create(w.t.Context(), w.request(name))
	drivertest.Must(w.t, err)
	return in
}

// describe describes the fleet's instance with this name.
func (w *world) describe(name string) (driver.Instance, error) {
	describer, can := driver.As[driver.Describer](w.cloud)
	if !can {
		w.t.Fatal("the cloud is no Describer")
	}
	return describer.Describe(w.t.Context(), "fleet."+name)
}

func (w *world) list() []driver.Instance {
	w.t.Helper()
	all, err := w.cloud.List(w.t.Context(), nil)
	drivertest.Must(w.t, err)
	return all
}

// login connects to an instance; the driver verifies its host key.
func (w *world) login(in driver.Instance) *ssh.Client {
	w.t.Helper()
	client, err := w.dial(in)
	drivertest.Must(w.t, err)
	w.t.Cleanup(func() { client.Close() })
	return client
}

func (w *world) dial(in driver.Instance) (*ssh.Client, error) {
	return ssh.Dial("tcp", in.Addresses.Private, &ssh.ClientConfig{
		User: in.Addresses.User,
		Auth: []ssh.AuthMethod{ssh.PublicKeys(w.key)},
		HostKeyCallback: func(_ string, _ net.Addr, key ssh.PublicKey) error {
			return w.cloud.VerifyHostKey(context.Background(), in, key.Marshal(), nil)
		},
		Timeout: 10 * time.Second,
	})
}

// run runs a command that must succeed and returns its output.
func run(t testing.TB, client *ssh.Client, command string) string {
	t.Helper()
	s, err := client.NewSession()
	drivertest.Must(t, err)
	defer s.Close()
	var stderr bytes.Buffer
	s.Stderr = &stderr
	out, err := s.Output(command)
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, &stderr)
	}
	return strings.TrimSpace(string(out))
}

// until polls for a change made by other processes.
func until(t testing.TB, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !done(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timed out waiting until %s", what)
		}
	}
}

func newHostKey(t testing.TB) string {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	drivertest.Must(t, err)
	block, err := ssh.MarshalPrivateKey(private, "")
	drivertest.Must(t, err)
	return string(pem.EncodeToMemory(block))
}

func newSigner(t testing.TB) ssh.Signer {
	t.Helper()
	signer, err := ssh.ParsePrivateKey([]byte(newHostKey(t)))
	drivertest.Must(t, err)
	return signer
}

// BenchmarkCreateToLogin measures the time from a create request to the end of the first command on the instance.
func BenchmarkCreateToLogin(b *testing.B) {
	w := newWorld(b, "")
	var created time.Duration
	for i := 0; b.Loop(); i++ {
		start := time.Now()
		in := w.create("bench-" + string(rune('a'+i%26)) + strings.Repeat("x", i/26))
		created += time.Since(start)
		run(b, w.login(in), "true")
		b.StopTimer()
		if err := w.cloud.Destroy(b.Context(), in.ID); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(created.Milliseconds())/float64(b.N), "create-ms/op")
}
