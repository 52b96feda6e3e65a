package remote

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"

	"drover"
)

// The scripts ask for nothing but a POSIX shell with cat and its like. $1 is the runner's folder, $2 the name of its
// file, $3 its hash, $4 what cksum says of it, which every POSIX system has. It does where there is no sha256sum.
const (
	wholeScript = `
whole() {
	[ -f "$1" ] && [ -x "$1" ] || return 1
	if command -v sha256sum >/dev/null 2>&1; then
		case $(sha256sum <"$1") in "$2"*) return 0 ;; esac
		return 1
	fi
	[ "$(cksum <"$1")" = "$3" ]
}
`
	checkScript = wholeScript + `
if whole "$1/$2" "$3" "$4"; then echo ` + presentWord + `; else echo ` + absentWord + `; fi
`
	// $5 and $6 are the fleet and the instance; $7 is not empty if this Connect has compared the runner before.
	controlScript = wholeScript + `
if [ -n "$7" ] || whole "$1/$2" "$3" "$4"; then
	echo ` + presentWord + `
	exec "$1/$2" control --dir "$1" --fleet "$5" --instance "$6"
fi
echo ` + absentWord + `
`
	bulkScript = `
echo ` + presentWord + `
exec "$1/$2" bulk --dir "$1"
`
	// $1 is a file, or the file that the variable $2 names, if it names one.
	readScript = `
file=$1
[ -z "$2" ] || eval "file=\${$2:-\$1}"
echo ` + presentWord + `
cat <"$file"
`

	// $1 is a command.
	outputScript = `
echo ` + presentWord + `
eval "$1"
`

	// $5 makes the name of the file under way nobody else's. A rename puts it in place, so several uploads at once are
	// harmless. It is not synced: what a power failure spoils is found by the next check.
	uploadScript = wholeScript + `
umask 077
mkdir -p "$1" || exit 1
new=$1/$2.$5
trap "exit 1" HUP INT PIPE TERM
trap "rm -f \"\$new\"" EXIT
cat >"$new" && chmod 700 "$new" || exit 1
if ! whole "$new" "$3" "$4"; then
	echo "the received file differs from the sent one" >&2
	exit 1
fi
mv -f "$new" "$1/$2"
`
)

// The words by which a script says whether the runner, or whatever it is about, is there. They end a line: what a login
// shell prints before may leave its last one open.
const (
	presentWord = "drover-runner-present"
	absentWord  = "drover-runner-absent"
)

// maxNoise bounds what a login shell may print before a script speaks.
const maxNoise = 64 << 10

// readVerdict reads up to the line that says whether the runner is there. What follows is the script's own.
func readVerdict(r *bufio.Reader) (present bool, err error) {
	for read := 0; read < maxNoise; {
		line, err := r.ReadSlice('\n')
		read += len(line)
		switch said := bytes.TrimSpace(line); {
		case bytes.HasSuffix(said, []byte(presentWord)):
			return true, nil
		case bytes.HasSuffix(said, []byte(absentWord)):
			return false, nil
		}
		if err != nil && err != bufio.ErrBufferFull {
			return false, err
		}
	}
	return false, errors.New("the login shell prints too much")
}

// place is where the runner is, as the scripts' first arguments.
func (t Target) place() []string {
	return []string{t.RunnerDir, t.Runner.name(), t.Runner.Hash, t.Runner.Sum}
}

// deploy puts the runner on the instance unless it is there.
func (s *session) deploy() error {
	s.begin("looking for the runner", s.target.Timeouts.Command)
	_, out, err := run(s.conn, s.target.runnerShell(checkScript, s.target.place()...), nil)
	if err != nil {
		return s.deadlines.fail(err)
	}
	present, err := readVerdict(bufio.NewReader(strings.NewReader(string(out.bytes()))))
	if err != nil {
		return s.deadlines.fail(err)
	}
	if s.compared = present; present {
		return nil
	}
	return s.upload()
}

// upload sends the runner. The instance's end compares what arrived.
func (s *session) upload() error {
	s.begin("deploying the runner", s.target.Timeouts.Deploy)
	content, err := s.target.Runner.Open()
	if err != nil {
		return s.deadlines.fail(err)
	}
	defer content.Close()
	exact := &exactReader{io.LimitReader(content, s.target.Runner.Size+1), s.target.Runner.Size}
	if _, _, err := run(s.conn, s.target.runnerShell(uploadScript, append(s.target.place(), rand.Text())...), exact); err != nil {
		return s.deadlines.fail(err)
	}
	s.compared = true
	return nil
}

// exactReader refuses to end early or late.
type exactReader struct {
	r    io.Reader
	left int64
}

func (e *exactReader) Read(p []byte) (int, error) {
	n, err := e.r.Read(p)
	if e.left -= int64(n); e.left < 0 || err == io.EOF && e.left > 0 {
		return n, errors.New("the local copy of the runner has the wrong size")
	}
	return n, err
}

// bootProbe runs the boot probe. The connection outlives one that hangs, since the runner is still to be asked what it
// has: the command is hung up on and left behind.
func (s *session) bootProbe() error {
	probe := step{"boot probe", drover.KindTransient, s.target.Timeouts.BootProbe}
	s.deadlines.enter(probe)
	ctx, cancel := context.WithTimeoutCause(s.ctx, probe.limit, fmt.Errorf("no answer within %v", probe.limit))
	defer cancel()
	p, out, err := runWithin(ctx, s.conn, shell(s.target.BootProbe))
	switch {
	case err == nil:
		return nil
	case p == nil || p.vanished():
		return s.deadlines.fail(err)
	}
	said := strings.TrimSpace(out.lastLines() + " " + p.stderr.lastLines())
	return drover.Errorf(drover.KindTransient, "boot probe %s%s", p.end(), after(": ", said))
}
