package remote

import (
	"bufio"
	"bytes"
	"context"
	"strconv"
	"strings"
	"time"

	"drover"
)

// $1 is the runner's folder. The age of the recorded time is by the instance's own clock: if the clock is wrong, it is
// wrong by the same amount both times.
const lastHeardScript = `
echo ` + presentWord + `
date +%s
[ ! -e "$1/heard" ] || cat "$1/heard"
`

// SinceHeard returns how long ago the instance's runner last heard from a controller. It does not contact the runner and
// leaves nothing behind. It returns KindNotFound if there is no runner or it never heard a controller; its other errors
// are those of [Connect].
func SinceHeard(ctx context.Context, t Target) (time.Duration, error) {
	return visit(ctx, t, func(s *session) (time.Duration, error) {
		defer s.raw.Close()
		s.begin("asking when it last heard from a controller", s.target.Timeouts.Command)
		_, out, err := run(s.conn, s.target.runnerShell(lastHeardScript, s.target.RunnerDir), nil)
		if err != nil {
			return 0, s.deadlines.fail(err)
		}
		return readLastHeard(out.bytes())
	})
}

// readLastHeard reads what the script printed.
func readLastHeard(out []byte) (time.Duration, error) {
	r := bufio.NewReader(bytes.NewReader(out))
	if _, err := readVerdict(r); err != nil {
		return 0, drover.Errorf(drover.KindTransient, "its shell printed nothing")
	}
	clock, _ := r.ReadString('\n')
	heard, _ := r.ReadString('\n')
	now, err := strconv.ParseInt(strings.TrimSpace(clock), 10, 64)
	if err != nil {
		return 0, drover.Errorf(drover.KindTransient, "its clock shows an invalid time: %.40q", clock)
	}
	if strings.TrimSpace(heard) == "" {
		return 0, drover.Errorf(drover.KindNotFound, "it has never heard from a controller")
	}
	then, err := time.Parse(time.RFC3339, strings.TrimSpace(heard))
	if err != nil {
		return 0, drover.Errorf(drover.KindTransient, "it reports an invalid time for its last contact with a controller: %.40q", heard)
	}
	return max(0, time.Unix(now, 0).Sub(then)), nil
}
