// Package wire defines the messages that a controller and a runner exchange over SSH.
//
// One channel per instance is the control stream: small messages both ways, one JSON object per line, beginning with a
// Hello from each side. Large data goes over separate bulk channels: one Request line, one Reply line, then raw bytes.
// Both sides are built from the same source tree, but not always from the same version: a reader ignores unknown keys
// and message types, and Hello.Version is raised only when that is not enough.
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

// Version is the protocol version. A side that meets another version reports it and hangs up.
const Version = 1

// MaxLine bounds one message, so that neither side can make the other allocate without bound.
const MaxLine = 1 << 20

// Message is one line of the control stream: exactly one field is set.
type Message struct {
	// Both ways; the first message of each side.
	Hello *Hello `json:"hello,omitempty"`

	// From the controller.
	Start  *Start  `json:"start,omitempty"`  // run an attempt; answered by Started, Missing or Refused
	Stop   *Stop   `json:"stop,omitempty"`   // end an attempt; its Exited follows
	Forget *Forget `json:"forget,omitempty"` // the attempt's result is stored: clean up; not answered
	Ping   *Ping   `json:"ping,omitempty"`   // answered by Pong with the same number
	Orders *Orders `json:"orders,omitempty"` // sent after the Hello, and again on every change; not answered

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

// ApartVariable is set in a runner's environment if its attempts must be isolated from each other.
const ApartVariable = "DROVER_APART"

// Hello opens the stream. The controller's identifies the controller; the runner's answer lists what the runner holds.
type Hello struct {
	Version  int       `json:"version"`
	Epoch    int64     `json:"epoch"` // a runner refuses an epoch lower than the highest it has seen
	Fleet    string    `json:"fleet"`
	Instance string    `json:"instance"`           // the instance's name; a runner of another instance refuses
	Apart    bool      `json:"apart,omitempty"`    // controller only: attempts must be isolated; a runner that cannot do it refuses
	Attempts []Attempt `json:"attempts,omitempty"` // runner only: all attempts that it has not been told to forget
	Log      []string  `json:"log,omitempty"`      // runner only: the last lines of its own log, including those of earlier processes
	Heard    time.Time `json:"heard,omitzero"`     // runner only: when it last heard an earlier controller, by the instance's clock
	Notice   *Notice   `json:"notice,omitempty"`   // runner only: the notice in force, if any
	Ailing   *Ailing   `json:"ailing,omitempty"`   // runner only: what is wrong with the instance, if anything
	Error    string    `json:"error,omitempty"`    // runner only: why it refuses; it hangs up after this
	Unfit    bool      `json:"unfit,omitempty"`    // runner only: it will always refuse
}

// Orders are what a controller wants from a runner besides attempts. The runner obeys the latest ones, even after it
// restarts.
type Orders struct {
	Orphan   time.Duration `json:"orphan,omitempty"`   // it powers the instance off after this long with no controller and no attempt; 0: never
	Notices  string        `json:"notices,omitempty"`  // where it reads the cloud's notices, as driver.Notices; empty: nowhere
	Health   string        `json:"health,omitempty"`   // a shell command that exits 0 while the instance is healthy; empty: none
	Interval time.Duration `json:"interval,omitempty"` // between two runs of Health
	Deadline time.Duration `json:"deadline,omitempty"` // of one run of Health
	Grace    time.Duration `json:"grace,omitempty"`    // the most that an attempt gets from SIGTERM to SIGKILL when the instance is reclaimed
	Runtime  string        `json:"runtime,omitempty"`  // what runs attempts with an image: docker or podman; empty: the first that works
}

// Notice reports that the cloud will reclaim the instance. It is sent at once, and again in each Hello while it is in
// force. A Notice without a Cause reports that the cloud has withdrawn it.
type Notice struct {
	drover.Notice
}

// Ailing reports what is wrong with the instance, according to the runner's own checks or the Health command. Without
// Text, it reports that the instance is healthy again.
type Ailing struct {
	Text string `json:"text,omitempty"`
}

// Attempt is one attempt on an instance: running, or ended if Exit is set.
type Attempt struct {
	ID    drover.AttemptID `json:"id"`
	Exit  *drover.Exit     `json:"exit,omitempty"`
	Proof string           `json:"proof,omitempty"`
}

// Start requests that an attempt be run. A Start for an attempt that the runner already has is answered by Started if
// its command has started, and by Exited if it has ended.
type Start struct {
	ID      drover.AttemptID  `json:"id"`
	Command []string          `json:"command"`         // empty only with an Image, whose own command then runs
	Image   string            `json:"image,omitempty"` // run it in a container of this image
	Env     map[string]string `json:"env,omitempty"`   // DROVER_API is added by the runner
	Files   []drover.File     `json:"files,omitempty"`
	Outputs []string          `json:"outputs,omitempty"`
	Timeout time.Duration     `json:"timeout,omitempty"` // 0: none
	Grace   time.Duration     `json:"grace"`             // from the first SIGTERM to SIGKILL
	Limits  drover.Resources  `json:"limits"`
	Store   string            `json:"store,omitempty"` // the records that number the attempt, by their nonce
	Apart   bool              `json:"apart,omitempty"` // it runs as its own user, isolated from other attempts
	Proof   string            `json:"proof,omitempty"` // proves that this instance was given the attempt; returned in Attempt and Exited
}

// Stop requests an attempt's end: SIGTERM to its process group at once and every few seconds, SIGKILL after Grace.
type Stop struct {
	ID    drover.AttemptID `json:"id"`
	Grace time.Duration    `json:"grace"`
}

// Forget lets the runner delete an ended attempt's folder. An attempt that still runs is not forgotten.
type Forget struct {
	ID  drover.AttemptID `json:"id"`
	Not string           `json:"not,omitempty"` // a nonce of records: an attempt of theirs is not the one meant, and is kept
}

// Ping carries a number, which Pong returns.
type Ping struct {
	N int64 `json:"n"`
}

// Started reports that the attempt's command is running, or has run.
type Started struct {
	ID drover.AttemptID `json:"id"`
}

// Missing lists, by hash, the contents that the runner needs before it can start the attempt. The controller uploads
// them by PutBlob, then sends Start again.
type Missing struct {
	ID     drover.AttemptID `json:"id"`
	Hashes []string         `json:"hashes"`
}

// Refused reports that the attempt was not started and never will be under this number, and why. With NotHere, nothing
// is wrong with the Start itself: the job may be started elsewhere, or under another number.
type Refused struct {
	ID      drover.AttemptID `json:"id"`
	Text    string           `json:"text"`
	NotHere bool             `json:"not_here,omitempty"`
}

// Exited reports that the attempt's command has ended. It is sent at once, and again in each Hello until forgotten.
type Exited struct {
	ID    drover.AttemptID `json:"id"`
	Exit  drover.Exit      `json:"exit"`
	Proof string           `json:"proof,omitempty"`
}

// API reports that a job on the instance has connected to DROVER_API. The controller takes the connection with an
// OpenAPI request.
type API struct {
	Conn int64 `json:"conn"`
}

// An instance holds at most APIConns of its jobs' connections to DROVER_API at once, and waits at most APIPatience for
// the controller to take each.
const (
	APIConns    = 64
	APIPatience = 10 * time.Second
)

// Log is a line that the runner has just written to its own log.
type Log struct {
	Line string `json:"line"`
}

// A Hello carries at most LogLines lines of the runner's own log. Each line sent, there or in a Log, is cut to LogLine
// bytes.
const (
	LogLines = 10
	LogLine  = 500
)

// Request begins each operation on a bulk channel. Op determines which fields matter.
type Request struct {
	Op     Op               `json:"op"`
	ID     drover.AttemptID `json:"id,omitzero"`
	Hash   string           `json:"hash,omitempty"`
	Size   int64            `json:"size,omitempty"`
	Stream string           `json:"stream,omitempty"` // "stdout" or "stderr"
	Offset int64            `json:"offset,omitempty"`
	Conn   int64            `json:"conn,omitempty"`
}

// Op is an operation on a bulk channel.
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
	// second Reply that reports whether it is complete.
	GetOutputs Op = "get_outputs"

	// OpenAPI takes a connection that a job has made. From then on the channel carries the connection's bytes.
	OpenAPI Op = "open_api"
)

// Reply answers a Request. If Error is empty, the operation continues as described.
type Reply struct {
	Size  int64  `json:"size,omitempty"`
	Error string `json:"error,omitempty"`

	// Of GetOutputs.
	LeftOut   []string `json:"left_out,omitempty"`  // what matched but was not sent, and why: for example a link that leaves the working folder
	Unmatched []int    `json:"unmatched,omitempty"` // indexes of the patterns that matched nothing that was sent
}

// Conn reads and writes lines of JSON. One goroutine may read while any number write.
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
		return drover.Errorf(drover.KindInvalid, "a message of %d bytes is over the limit of %d", len(line), MaxLine)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err = c.w.Write(append(line, '\n'))
	return err
}

// Read decodes the next line into v. It returns io.EOF at a clean end.
func (c *Conn) Read(v any) error {
	var line []byte
	for {
		part, err := c.r.ReadSlice('\n')
		if len(line)+len(part) > MaxLine {
			return fmt.Errorf("a message is over the limit of %d bytes", MaxLine)
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

// Bytes returns a reader of the raw bytes that follow the lines read so far.
func (c *Conn) Bytes() io.Reader { return c.r }
