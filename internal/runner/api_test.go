package runner_test

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"drover"
	"drover/internal/wire"
)

func TestEnvironment(t *testing.T) {
	t.Run("a command gets the runner's environment, its own variables and those that describe its attempt", func(t *testing.T) {
		i := newInstance(t)
		c, id := i.connect(), attempt(1, 1)
		c.start(sh(id, `echo "$PATH"; echo "$OWN"; pwd; echo "$DROVER_NOTICE_FILE"`).withEnv("OWN", "mine"))
		want := strings.Join([]string{os.Getenv("PATH"), "mine", i.attemptPath(id, "work"), i.attemptPath(id, "told/notice"), ""}, "\n")
		if e := c.exited(id); e.Stdout != want {
			t.Errorf("got %q, want %q", e.Stdout, want)
		}
	})
	t.Run("a DROVER_API set by the controller is kept", func(t *testing.T) {
		c, id := newInstance(t).connect(), attempt(1, 1)
		c.start(sh(id, `echo $DROVER_API`).withEnv("DROVER_API", "https://drover.example"))
		if e := c.exited(id); e.Stdout != "https://drover.example\n" {
			t.Errorf("got %q", e.Stdout)
		}
	})
}

// apiAddress returns DROVER_API as jobs see it.
func (c *controller) apiAddress(id drover.AttemptID) string {
	c.t.Helper()
	return strings.TrimSpace(c.ran(id, "echo $DROVER_API").Stdout)
}

// covers D8
func TestAPI(t *testing.T) {
	i := newInstance(t)
	c := i.connect()
	address := c.apiAddress(attempt(1, 1))
	t.Run("a job's request reaches the controller, and the answer reaches the job", func(t *testing.T) {
		got := make(chan string, 1)
		go func() {
			r, err := http.Get(address + "/v1/jobs")
			if err != nil {
				got <- err.Error()
				return
			}
			defer r.Body.Close()
			body, _ := io.ReadAll(r.Body)
			got <- string(body)
		}()
		conn := c.want("API", func(m wire.Message) bool { return m.API != nil }).API.Conn
		ch := i.bulk()
		if r := ch.ask(wire.Request{Op: wire.OpenAPI, Conn: conn}); r.Error != "" {
			t.Fatal(r.Error)
		}
		request, err := http.ReadRequest(bufio.NewReader(ch.Bytes()))
		if err != nil || request.URL.Path != "/v1/jobs" {
			t.Fatalf("got %+v, %v", request, err)
		}
		io.WriteString(ch.write, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")
		if answer := <-got; answer != "hello" {
			t.Errorf("the job got %q", answer)
		}
		if r := i.bulk().ask(wire.Request{Op: wire.OpenAPI, Conn: conn}); r.Error == "" {
			t.Error("a connection was taken twice")
		}
	})
	t.Run("the next daemon listens on the same address", func(t *testing.T) {
		i.kill(i.daemon())
		if got := i.connect().apiAddress(attempt(2, 1)); got != address {
			t.Errorf("got %s, want %s", got, address)
		}
	})
}
