// Package wire is what a controller and a runner say to each other over SSH.
//
// One channel per instance is the control stream: small messages both ways, one JSON object a line, beginning with a
// Hello from each side. Everything large goes in channels of its own, each beginning with one Request line and answered
// by one Reply line, then raw bytes. Both sides come from the same source tree, but not always from the same version of
// it: a reader ignores keys and message types that it does not know, and Hello.Version is raised only when that is not
// enough.
package wire

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"drover"
)

// Version of the protocol. A side that meets another version says so and hangs up.
const Version = 1

// MaxLine bounds one message, so that neither side can make the other allocate without end.
const MaxLine = 1 << 20

// Message is one line of the control stream: exactly one field is set.
type Message struct {
	// Both ways; the first message of each side.
	Hello *Hello `json:"hello,omitempty"`

	// From the controller.
	Start  *Start  `json:"start,omitempty"`  // run an attempt; answered by Started, Missing or Refused
	Stop   *Stop   `json:"stop,omitempty"`   // end an attempt; its Exited follows
	Forget *Forget `json:"forget,omitempty"` // the attempt's end is stored: clean up; not answered
	Ping   *Ping   `json:"ping,omitempty"`   // answered by Pong with the same number
	Orders *Orders `json:"orders,omitempty"` // follows the Hello, and comes again when it changes; not answered

	// From the runner.
	Started *Started `json:"started,omitempty"`
	Missing *Missing `json:"missing,omitempty"`
	Refused *Refused `json:"refused,omitempty"`
	Exited  *Exited  `json:"exited,omitempty"`
	Pong    *Ping    `json:"pong,omitempty"`
	API     *API     `json:"api,omitempty"`
	Log     *Log     `json:"log,omitempty"`
	Notice  *Notice  `json:"notice,omitempty"`
	Ailing  *Ailing  `json:"ailing,omitempty"`
}

// ApartVariable in the environment in which a runner is started says that its attempts are to be kept apart.
const ApartVariable = "DROVER_APART"

// Hello opens the stream. The controller's says who it is; the runner's answer says what it has.
type Hello struct {
	Version  int       `json:"version"`
	Epoch    int64     `json:"epoch"` // a runner refuses an epoch lower than the highest it has seen
	Fleet    string    `json:"fleet"`
	Instance string    `json:"instance"`           // the instance's name; a runner that is another instance's refuses
	Apart    bool      `json:"apart,omitempty"`    // controller only: attempts are to be kept apart; a runner that cannot refuses
	Attempts []Attempt `json:"attempts,omitempty"` // runner only: all that it has and was not told to forget
	Log      []string  `json:"log,omitempty"`      // runner only: the last lines of its own log, those of an earlier process of it included
	Heard    time.Time `json:"heard,omitzero"`     // runner only: when it last heard a controller before this one, by the instance's clock
	Notice   *Notice   `json:"notice,omitempty"`   // runner only: one that stands
	Ailing   *Ailing   `json:"ailing,omitempty"`   // runner only: what is wrong with the instance
	Error    string    `json:"error,omitempty"`    // runner only: why it refuses; it hangs up after this
	Unfit    bool      `json:"unfit,omitempty"`    // runner only: it always will
}

// Orders are what a controller wants of a runner beside attempts. The runner keeps to the last ones, over its own
// restarts too.
type Orders struct {
	Orphan   time.Duration `json:"orphan,omitempty"`   // no word from any controller for so long, and no attempt: it powers the instance off; 0: never
	Notices  string        `json:"notices,omitempty"`  // where it reads that the cloud takes the instance back, as driver.Notices; empty: nowhere
	Health   string        `json:"health,omitempty"`   // a shell command that exits 0 while the instance is well; empty: none
	Interval time.Duration `json:"interval,omitempty"` // between two runs of Health
	Deadline time.Duration `json:"deadline,omitempty"` // of one
	Grace    time.Duration `json:"grace,omitempty"`    // what an attempt gets between SIGTERM and SIGKILL when the instance is taken back, at most
	Runtime  string        `json:"runtime,omitempty"`  // what runs attempts with an image: docker or podman; empty: whichever is there
}

// Notice says that the cloud will take the instance back. It is sent at once, and again in each Hello while it stands.
// One without a Cause says that the cloud has thought better of it.
type Notice struct {
	drover.Notice
}

// Ailing says what is wrong with the instance, by the runner's own look or by the Health command. One without Text
// takes it back.
type Ailing struct {
	Text string `json:"text,omitempty"`
}

// Attempt is one attempt on an instance: running, or ended if Exit is set.
type Attempt struct {
	ID    drover.AttemptID `json:"id"`
	Exit  *drover.Exit     `json:"exit,omitempty"`
	Proof string           `json:"proof,omitempty"`
}

// Start asks for an attempt to be run. Asking again for one that is known is answered by Started, and by Exited if it
// has ended.
type Start struct {
	ID      drover.AttemptID  `json:"id"`
	Command []string          `json:"command"`         // empty only with an Image, whose own is then run
	Image   string            `json:"image,omitempty"` // runs it in a container of this image
	Env     map[string]string `json:"env,omitempty"`   // DROVER_API is added by the runner
	Files   []drover.File     `json:"files,omitempty"`
	Outputs []string          `json:"outputs,omitempty"`
	Timeout time.Duration     `json:"timeout,omitempty"` // 0: none
	Grace   time.Duration     `json:"grace"`             // from the first SIGTERM to SIGKILL
	Limits  drover.Resources  `json:"limits"`
	Store   string            `json:"store,omitempty"` // the records that number the attempt, by their nonce
	Apart   bool              `json:"apart,omitempty"` // it runs as a user of its own, and sees nothing of others
	Proof   string            `json:"proof,omitempty"` // that this instance was given the attempt: comes back with all that is said of it
}

// Stop asks for an attempt's end: SIGTERM to its process group at once and every few seconds, SIGKILL after Grace.
type Stop struct {
	ID    drover.AttemptID `json:"id"`
	Grace time.Duration    `json:"grace"`
}

// Forget lets the runner delete an ended attempt's folder. What still runs is not forgotten.
type Forget struct {
	ID  drover.AttemptID `json:"id"`
	Not string           `json:"not,omitempty"` // records, by their nonce, whose attempt of that number is not the one that is meant
}

// Ping carries a number that comes back.
type Ping struct {
	N int64 `json:"n"`
}

// Started says that the attempt's command runs, or has run.
type Started struct {
	ID drover.AttemptID `json:"id"`
}

// Missing says which contents the runner needs before it can start the attempt, by hash; they are put by PutBlob, then
// Start is sent again.
type Missing struct {
	ID     drover.AttemptID `json:"id"`
	Hashes []string         `json:"hashes"`
}

// Refused says that the attempt was not started and never will be under this number, and why. With NotHere nothing is
// wrong with what was asked: the job may be started elsewhere, or under another number.
type Refused struct {
	ID      drover.AttemptID `json:"id"`
	Text    string           `json:"text"`
	NotHere bool             `json:"not_here,omitempty"`
}

// Exited says that the attempt's command has ended. It is sent at once, and again in each Hello until forgotten.
type Exited struct {
	ID    drover.AttemptID `json:"id"`
	Exit  drover.Exit      `json:"exit"`
	Proof string           `json:"proof,omitempty"`
}

// API says that a job on the instance has connected to DROVER_API: the controller takes the connection with an OpenAPI
// request.
type API struct {
	Conn int64 `json:"conn"`
}

// What an instance holds of its jobs' connections to DROVER_API: at most so many at once, and each for so long until
// the controller takes it.
const (
	APIConns    = 64
	APIPatience = 10 * time.Second
)

// Log is a line that the runner has just written to its own log.
type Log struct {
	Line string `json:"line"`
}

// What of a runner's own log travels by itself: so many lines in a Hello, of so many bytes each.
const (
	LogLines = 10
	LogLine  = 500
)

// Request is the first line of a bulk channel. Op says which fields matter.
type Request struct {
	Op     Op               `json:"op"`
	ID     drover.AttemptID `json:"id,omitzero"`
	Hash   string           `json:"hash,omitempty"`
	Size   int64            `json:"size,omitempty"`
	Stream string           `json:"stream,omitempty"` // "stdout", "stderr", SupervisorStream or RunnerStream
	Offset int64            `json:"offset,omitempty"`
	Conn   int64            `json:"conn,omitempty"`
}

// Op is what a bulk channel is for.
type Op string

// The operations. A channel carries any number of PutBlob, GetLog and GetOutputs in turn; OpenAPI is its last.
const (
	// PutBlob stores contents under their hash: Size bytes follow from the controller, then a second Reply once they
	// are stored and their hash is right.
	PutBlob Op = "put_blob"

	// GetLog reads a stream from Offset to its present end, but no more than Size bytes if that is not 0: Reply.Size
	// bytes follow.
	GetLog Op = "get_log"

	// GetOutputs fetches the files that match the attempt's output patterns: a tar stream follows in chunks, then a
	// second Reply that says whether it is whole.
	GetOutputs Op = "get_outputs"

	// OpenAPI takes up a connection that a job has made: from here on the two sides are its two ends.
	OpenAPI Op = "open_api"
)

// The streams that are the runner's own: what the attempt's supervisor did, and what the instance's daemon did (which
// belongs to no attempt).
const (
	SupervisorStream = "supervisor"
	RunnerStream     = "runner"
)

// Reply answers a Request. Error is empty when the operation goes on as described.
type Reply struct {
	Size  int64  `json:"size,omitempty"`
	Error string `json:"error,omitempty"`

	// Of GetOutputs.
	LeftOut   []string `json:"left_out,omitempty"`  // what matched and was not sent, such as a link that leaves the working folder, and why
	Unmatched []int    `json:"unmatched,omitempty"` // places of the patterns that matched nothing
}

// Conn reads and writes lines of JSON. One goroutine may read while others write.
type Conn struct {
	r *bufio.Reader

	mu sync.Mutex
	w  io.Writer // guarded by mu
}

// NewConn makes a Conn over a byte stream. The buffer is small: an idle instance should cost little.
func NewConn(r io.Reader, w io.Writer) *Conn {
	return &Conn{r: bufio.NewReaderSize(r, 4096), w: w}
}

// Write sends v as one line.
func (c *Conn) Write(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(line) >= MaxLine {
		return drover.Errorf(drover.KindInvalid, "message of %d bytes is over the limit of %d", len(line), MaxLine)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err = c.w.Write(append(line, '\n'))
	return err
}

// Read takes the next line into v. It returns io.EOF at a clean end.
func (c *Conn) Read(v any) error {
	var line []byte
	for {
		part, err := c.r.ReadSlice('\n')
		if len(line)+len(part) > MaxLine {
			return fmt.Errorf("message over the limit of %d bytes", MaxLine)
		}
		line = append(line, part...)
		if err == bufio.ErrBufferFull {
			continue
		}
		if err != nil {
			if err == io.EOF && len(line) > 0 {
				return io.ErrUnexpectedEOF
			}
			return err
		}
		return json.Unmarshal(line, v)
	}
}

// Bytes reads what follows the lines, raw.
func (c *Conn) Bytes() io.Reader { return c.r }
