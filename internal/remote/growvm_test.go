//go:build qemu

package remote

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// bootTime is how long a VM may take for one step: it is emulated, on a busy host.
const bootTime = 5 * time.Minute

// emulated is a VM made by testdata/grow-vm.sh.
type emulated struct {
	t       *testing.T
	console string
	monitor io.Writer
}

// emulate boots the kernel and initrd in a folder, with a disk of this kind.
func emulate(t *testing.T, folder string, disk ...string) *emulated {
	t.Helper()
	m := &emulated{t: t, console: filepath.Join(t.TempDir(), "console")}
	args := []string{
		"-machine", "pc", "-accel", "tcg,thread=multi", "-cpu", "max", "-m", "256", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		"-kernel", filepath.Join(folder, "vmlinuz"), "-initrd", filepath.Join(folder, "initrd"), "-append", "console=ttyS0 quiet panic=1",
		"-serial", "file:" + m.console, "-monitor", "stdio", "-drive", "id=disk,format=raw,if=none,file=" + filepath.Join(folder, "disk"),
	}
	cmd := exec.CommandContext(t.Context(), "qemu-system-x86_64", append(args, disk...)...)
	monitor, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	m.monitor = monitor
	return m
}

// await waits until the text is on the VM's console, and returns all of the console's output.
func (m *emulated) await(what string) string {
	m.t.Helper()
	for end := time.Now().Add(bootTime); ; time.Sleep(100 * time.Millisecond) {
		said, _ := os.ReadFile(m.console)
		if strings.Contains(string(said), what) {
			return string(said)
		}
		if time.Now().After(end) {
			m.t.Fatalf("no %q on the console: %s", what, said)
		}
	}
}

// TestGrowScriptOnAVM grows the ext4 root of a running VM after its disk has been enlarged, as a cloud does.
// covers K14
func TestGrowScriptOnAVM(t *testing.T) {
	folder, err := filepath.Abs("../../bin/grow-vm")
	if err != nil {
		t.Fatal(err)
	}
	const wants = 2 << 20 / 10 * 9 // KiB
	for _, tt := range []struct {
		name string
		disk []string
	}{
		{"a virtio disk, as on OpenStack", []string{"-device", "virtio-blk-pci,drive=disk"}},
		{"a SCSI disk, as on GCE", []string{"-device", "virtio-scsi-pci", "-device", "scsi-hd,drive=disk"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, err := exec.Command("testdata/grow-vm.sh", folder, shell(growScript, fmt.Sprint(wants), "15")).CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			m := emulate(t, folder, tt.disk...)
			m.await("READY")
			fmt.Fprintln(m.monitor, "block_resize disk 2G")
			said := m.await(" KiB")
			_, rest, _ := strings.Cut(said, "\nhas ")
			var has int
			if fmt.Sscan(rest, &has); has < wants || !strings.Contains(said, "ended with 0") {
				t.Errorf("%s", said)
			}
		})
	}
}
