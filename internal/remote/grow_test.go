package remote

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// instanceTools replace an instance's tools: its root file system has as many KiB as the file "size" contains, and each
// tool records that it was called.
var instanceTools = map[string]string{
	"df":         `echo "Filesystem 1024-blocks"; echo "/dev/vda1 $(cat "$0.size") 1 2 3% /"`,
	"findmnt":    `case $2 in SOURCE) echo /dev/vda1 ;; *) cat "${0%/*}/kind" ;; esac`,
	"lsblk":      `echo vda; echo`,
	"id":         `echo 1000`,
	"sudo":       `shift; exec "$@"`,
	"sleep":      `:`,
	"cat":        `case $1 in /sys/*) echo 1 ;; *) exec /bin/cat "$@" ;; esac`,
	"growpart":   `echo "growpart $*" >>"${0%/*}/calls"`,
	"resize2fs":  `echo "resize2fs $*" >>"${0%/*}/calls"; [ "$(wc -l <"${0%/*}/calls")" -lt 4 ] || echo 120 >"${0%/*}/df.size"`,
	"xfs_growfs": `echo "xfs_growfs $*" >>"${0%/*}/calls"; echo "no room" >&2; exit 1`,
}

// covers K14
func TestGrowScript(t *testing.T) {
	for _, tt := range []struct{ name, has, wants, kind, said, calls string }{
		{"a root that is large enough is left alone", "100", "100", "ext4", "", ""},
		{"it retries until the instance sees the new size", "20", "108", "ext4", "", "growpart /dev/vda 1\nresize2fs /dev/vda1\ngrowpart /dev/vda 1\nresize2fs /dev/vda1\n"},
		{"a failure that persists is explained", "20", "108", "xfs", "has 20 KiB, not 108: no room", "growpart /dev/vda 1\nxfs_growfs /\ngrowpart /dev/vda 1\nxfs_growfs /\ngrowpart /dev/vda 1\nxfs_growfs /\n"},
		{"an unknown file system is reported", "20", "108", "zfs", "zfs file systems cannot be grown", "growpart /dev/vda 1\ngrowpart /dev/vda 1\ngrowpart /dev/vda 1\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			folder := t.TempDir()
			write := func(name, text string) {
				if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			for name, text := range instanceTools {
				write(name, "#!/bin/sh\n"+text+"\n")
			}
			write("df.size", tt.has)
			write("kind", tt.kind)
			cmd := exec.Command("/bin/sh", "-c", shell(growScript, tt.wants, "3"))
			cmd.Env = []string{"PATH=" + folder + ":/usr/bin:/bin"}
			out, err := cmd.CombinedOutput()
			calls, _ := os.ReadFile(filepath.Join(folder, "calls"))
			if (err != nil) != (tt.said != "") || !strings.Contains(string(out), tt.said) || string(calls) != tt.calls {
				t.Errorf("%v, %q, after\n%s", err, out, calls)
			}
		})
	}
}
