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

// The scripts need only a POSIX shell and basic tools such as cat. $1 is the runner's folder, $2 the name of its file,
// $3 its hash, and $4 its checksum by cksum, which every POSIX system has and which is used if sha256sum is missing.
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
	// $5 and $6 are the fleet and the instance; $7 is true if this Connect has compared the runner before.
	controlScript = wholeScript + `
if [ "$7" = true ] || whole "$1/$2" "$3" "$4"; then
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

	// $5 makes the temporary file's name unique. A rename puts the file in place, so concurrent uploads are harmless.
	// The file is not synced: the next check finds what a power failure spoils.
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

// The words with which a script reports whether the runner, or what else it looks for, is present. They need only end a
// line: a login shell may print text before them without a newline.
const (
	presentWord = "drover-runner-present"
	absentWord  = "drover-runner-absent"
)

// maxNoise bounds what a login shell may print before a script's output.
const maxNoise = 64 << 10

// readVerdict reads up to the line that reports whether the runner is present. What follows is the script's further
// output.
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
	return false, errors.New("the login shell prints too much: check its startup files")
}

// place returns the scripts' first arguments: where the runner is and its checksums.
func (t Target) place() []string {
	return []string{t.RunnerDir, t.Runner.name(), t.Runner.Hash, t.Runner.Sum}
}

// deploy puts the runner on the instance unless it is present.
func (s *session) deploy() error {
	s.begin("looking for the runner", s.target.Timeouts.Command)
	_, out, err := run(s.conn, s.target.runnerShell(checkScript, s.target.place()...), nil)
	if err != nil {
		return s.deadlines.fail(err)
	}
	present, err := readVerdict(bufio.NewReader(bytes.NewReader(out.bytes())))
	if err != nil {
		return s.deadlines.fail(err)
	}
	if s.compared = present; present {
		return nil
	}
	return s.upload()
}

// upload sends the runner. The script on the instance checks what arrived.
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

// exactReader returns an error if its content is too short or too long.
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

// bootProbe runs the boot probe. If the probe hangs, its channel is closed and the command is left behind, but the
// connection stays open, since the runner must still be contacted.
func (s *session) bootProbe() error {
	s.begin("boot probe", 0)
	limit := s.target.Timeouts.BootProbe
	ctx, cancel := context.WithTimeoutCause(s.ctx, limit, fmt.Errorf("no answer within %v", limit))
	defer cancel()
	p, out, err := runWithin(ctx, s.conn, shell(s.target.BootProbe))
	switch {
	case err == nil:
		return nil
	case p == nil || p.vanished():
		return s.deadlines.fail(err)
	}
	said := strings.TrimSpace(out.lastLines() + " " + p.stderr.lastLines())
	return drover.Errorf(drover.KindTransient, "boot probe %s%s", p.end(), afterColon(said))
}
