package remote

import (
	"os/exec"
	"strings"
	"testing"
)

// TestShell checks that a script and its arguments arrive unchanged under any login shell.
func TestShell(t *testing.T) {
	const script = `
if [ $# -eq 2 ]; then
	printf '<%s>' "$@" "a\\b" 'it'\''s'
fi
`
	args := []string{"it's\n", `back\slash!bang $HOME "é" %s \0101`}
	want := "<" + args[0] + "><" + args[1] + `><a\b><it's>`
	command := shell(script, args...)
	if strings.ContainsAny(command, "\n!") || strings.Count(command, "'") != 4 || strings.Contains(command, `\'`) {
		t.Errorf("some shells would change this: %s", command)
	}
	for _, login := range []string{"sh", "bash", "zsh", "fish", "tcsh"} {
		t.Run("under "+login, func(t *testing.T) {
			path, err := exec.LookPath(login)
			if err != nil {
				t.Skip(err)
			}
			if got, err := exec.Command(path, "-c", command).CombinedOutput(); err != nil || string(got) != want {
				t.Errorf("got %q, %v, want %q", got, err, want)
			}
		})
	}
}
