package remote

import (
	"io"
	"testing"

	"golang.org/x/crypto/ssh"
)

// forgetful is a connection that waits for the answer to a channel that it has forgotten.
type forgetful struct {
	ssh.Conn
	forever chan struct{}
}

func (f forgetful) OpenChannel(string, []byte) (ssh.Channel, <-chan *ssh.Request, error) {
	<-f.forever
	return nil, nil, io.EOF
}

func TestNothingIsLaunchedOnAConnectionThatHasEnded(t *testing.T) {
	t.Parallel()
	f, ended := forgetful{forever: make(chan struct{})}, make(chan struct{})
	defer close(f.forever)
	close(ended)
	if p, err := launch(t.Context(), connection{f, ended}, "true"); err == nil {
		t.Errorf("launched %v", p)
	}
}
