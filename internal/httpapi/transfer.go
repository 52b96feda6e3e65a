package httpapi

import (
	"io"
	"net/http"
	"time"
)

const (
	stall    = 30 * time.Second // without progress this long, a connection is dropped
	rearm    = time.Second      // how often a deadline is moved, at most
	leftover = 5 * time.Second  // for the rest of a body that was not read
	bodyTime = 2 * time.Minute  // for all of a body that is not streamed
)

// response is an answer being sent. A client that does not read it is dropped: every write moves the deadline, so that
// it passes only if nothing gets through.
type response struct {
	http.ResponseWriter
	ctl    *http.ResponseController
	status int   // 0 until it begins
	bytes  int64 // of its body
	failed bool  // it could not be written
	caller string
	armed  time.Time
}

func newResponse(w http.ResponseWriter) *response {
	return &response{ResponseWriter: w, ctl: http.NewResponseController(w)}
}

// WriteHeader begins the answer.
func (r *response) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

// Write sends a part of the body.
func (r *response) Write(b []byte) (int, error) {
	r.begin()
	n, err := r.ResponseWriter.Write(b)
	r.bytes += int64(n)
	r.failed = r.failed || err != nil
	return n, err
}

// FlushError sends what was written.
func (r *response) FlushError() error {
	r.begin()
	return r.ctl.Flush()
}

func (r *response) begin() {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	if now := time.Now(); now.Sub(r.armed) > rearm {
		r.armed = now
		_ = r.ctl.SetWriteDeadline(now.Add(stall)) // not every connection has deadlines
	}
}

// upload is a request's body being received, with a deadline that moves as data arrives.
type upload struct {
	io.ReadCloser
	ctl   *http.ResponseController
	armed time.Time
	until time.Time // the deadline of the whole body; zero: none
	ended bool
}

func newUpload(ctl *http.ResponseController, body io.ReadCloser) *upload {
	return &upload{ReadCloser: body, ctl: ctl, ended: body == nil || body == http.NoBody}
}

// Read reads a part of the body.
func (u *upload) Read(b []byte) (int, error) {
	if now := time.Now(); !u.ended && now.Sub(u.armed) > rearm {
		u.armed = now
		by := now.Add(stall)
		if !u.until.IsZero() && u.until.Before(by) {
			by = u.until
		}
		_ = u.ctl.SetReadDeadline(by)
	}
	n, err := u.ReadCloser.Read(b)
	if err != nil && !u.ended {
		// A deadline that stayed would end the request itself.
		u.ended = true
		_ = u.ctl.SetReadDeadline(time.Time{})
	}
	return n, err
}

// end limits how long the HTTP server reads the rest of an unread body.
func (u *upload) end() {
	if !u.ended {
		_ = u.ctl.SetReadDeadline(time.Now().Add(leftover))
	}
}
