package wire_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"drover"
	"drover/internal/wire"
)

var id = drover.AttemptID{Job: drover.JobID{Number: 17, Index: 3}, Number: 2}

// messages are samples of most kinds.
var messages = []wire.Message{
	{Hello: &wire.Hello{Version: 1, Epoch: 5, Fleet: "lab", Instance: "lab-1", Attempts: []wire.Attempt{{ID: id, Exit: &drover.Exit{Code: 3}}}}},
	{Start: &wire.Start{ID: id, Command: []string{"true"}, Env: map[string]string{"A": "b\nc"}, Files: []drover.File{{Path: "x", Mode: 0o644, Size: 1, Hash: "ab"}}, Timeout: time.Hour}},
	{Stop: &wire.Stop{ID: id, Grace: time.Second}},
	{Forget: &wire.Forget{ID: id}},
	{Ping: &wire.Ping{N: 1}},
	{Started: &wire.Started{ID: id}},
	{Missing: &wire.Missing{ID: id, Hashes: []string{"ab"}}},
	{Refused: &wire.Refused{ID: id, Text: "no"}},
	{Exited: &wire.Exited{ID: id, Exit: drover.Exit{Stdout: "é\x00\n"}}},
	{Pong: &wire.Ping{N: 1}},
	{API: &wire.API{Conn: 9}},
}

func TestConn(t *testing.T) {
	t.Run("every message arrives as it was sent", func(t *testing.T) {
		var stream bytes.Buffer
		conn := wire.NewConn(&stream, &stream)
		for _, m := range messages {
			if err := conn.Write(m); err != nil {
				t.Fatal(err)
			}
		}
		for _, want := range messages {
			var got wire.Message
			if err := conn.Read(&got); err != nil || !cmp.Equal(got, want) {
				t.Errorf("%v %s", err, cmp.Diff(want, got))
			}
		}
		var m wire.Message
		if err := conn.Read(&m); err != io.EOF {
			t.Errorf("got %v at the end", err)
		}
	})
	t.Run("a newer side's keys and messages are ignored", func(t *testing.T) {
		var m wire.Message
		conn := wire.NewConn(strings.NewReader(`{"ping":{"n":3,"colour":"red"},"song":{}}`+"\n"), io.Discard)
		if err := conn.Read(&m); err != nil || m.Ping == nil || m.Ping.N != 3 {
			t.Errorf("got %+v, %v", m, err)
		}
	})
	t.Run("no byte after the lines is lost", func(t *testing.T) {
		conn := wire.NewConn(strings.NewReader("{}\n\nraw\n"), io.Discard)
		var r wire.Request
		if err := conn.Read(&r); err != nil {
			t.Fatal(err)
		}
		if rest, err := io.ReadAll(conn.Bytes()); err != nil || string(rest) != "\nraw\n" {
			t.Errorf("got %q, %v", rest, err)
		}
	})
	t.Run("a message at the limit passes, and a longer one does not", func(t *testing.T) {
		var stream bytes.Buffer
		conn := wire.NewConn(&stream, &stream)
		most := strings.Repeat("a", wire.MaxLine-len(`""`)-len("\n"))
		var got string
		if err := errors.Join(conn.Write(most), conn.Read(&got)); err != nil || got != most {
			t.Errorf("at the limit: %v", err)
		}
		if conn.Write(most+"a") == nil || stream.Len() > 0 {
			t.Error("over the limit: written")
		}
		if wire.NewConn(strings.NewReader(`"`+most+`a"`+"\n"), nil).Read(&got) == nil {
			t.Error("over the limit: read")
		}
	})
	t.Run("a line cut short is not a clean end", func(t *testing.T) {
		var m wire.Message
		if err := wire.NewConn(strings.NewReader(`{"ping"`), nil).Read(&m); err != io.ErrUnexpectedEOF {
			t.Errorf("got %v", err)
		}
	})
}

func TestChunks(t *testing.T) {
	t.Run("a stream arrives as it was sent, and what follows it is left unread", func(t *testing.T) {
		var stream bytes.Buffer
		w := wire.ChunkWriter{W: &stream}
		want := bytes.Repeat([]byte("0123456789"), 20_000)
		if _, err := w.Write(want); err != nil {
			t.Fatal(err)
		}
		w.Write(nil)
		w.Close()
		stream.WriteString("next")
		got, err := io.ReadAll(&wire.ChunkReader{R: &stream})
		if err != nil || !bytes.Equal(got, want) || stream.String() != "next" {
			t.Errorf("got %d bytes, %v, then %q", len(got), err, stream.String())
		}
	})
	for name, text := range map[string]string{
		"before its first chunk": "",
		"within a length":        "\x00\x00",
		"within a chunk":         "\x00\x00\x00\x05ab",
		"before its last chunk":  "\x00\x00\x00\x02ab",
	} {
		t.Run("a stream cut short "+name+" is not a clean end", func(t *testing.T) {
			if _, err := io.ReadAll(&wire.ChunkReader{R: strings.NewReader(text)}); err != io.ErrUnexpectedEOF {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("a chunk over the limit is refused", func(t *testing.T) {
		_, err := io.ReadAll(&wire.ChunkReader{R: strings.NewReader("\xff\xff\xff\xff")})
		if err == nil || err == io.ErrUnexpectedEOF {
			t.Errorf("got %v", err)
		}
	})
}

// FuzzConn feeds arbitrary lines to the reader: it must not panic, and a message that it accepts must read back the
// same after being written. Only a message with an omitted id is written but cannot be read back.
func FuzzConn(f *testing.F) {
	f.Add([]byte(`{"hello":{"version":1,"epoch":1,"fleet":"lab","instance":"lab-1","attempts":[{"id":"1/1","exit":{"code":1}}]}}` + "\n"))
	f.Add([]byte(`{"start":{"id":"17.3/1","command":["a"],"env":{"A":"b"},"timeout":-1}}` + "\n{}\nnull\n[]\n"))
	f.Add([]byte("\n\n\x00{"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		conn := wire.NewConn(bytes.NewReader(stream), nil)
		for {
			var m wire.Message
			if conn.Read(&m) != nil {
				return
			}
			var copied bytes.Buffer
			var again wire.Message
			pipe := wire.NewConn(&copied, &copied)
			if err := pipe.Write(m); err != nil && copied.Len() == 0 {
				continue // escaping may have made it too long
			}
			if err := pipe.Read(&again); err != nil {
				if !strings.Contains(err.Error(), "is not an attempt id") {
					t.Fatalf("reading %+v back: %v", m, err)
				}
				continue
			}
			if !cmp.Equal(again, m, cmpopts.EquateEmpty()) {
				t.Fatal(cmp.Diff(m, again))
			}
		}
	})
}

// FuzzRequest does the same for the first line of a bulk channel, and for chunks.
func FuzzRequest(f *testing.F) {
	f.Add([]byte(`{"op":"put_blob","hash":"ab","size":3}`+"\nabc"), []byte("\x00\x00\x00\x02ab\x00\x00\x00\x00"))
	f.Add([]byte(`{"op":"get_log","id":"1/1","stream":"stdout","offset":-9}`+"\n"), []byte("\x00\x01\x00\x01"))
	f.Fuzz(func(t *testing.T, line, chunks []byte) {
		var r wire.Request
		if wire.NewConn(bytes.NewReader(line), nil).Read(&r) == nil && r.ID != (drover.AttemptID{}) && r.ID.Number < 1 {
			t.Fatalf("%s gives the attempt %v", line, r.ID)
		}
		if n, _ := io.Copy(io.Discard, &wire.ChunkReader{R: bytes.NewReader(chunks)}); n > int64(len(chunks)) {
			t.Fatalf("%d bytes out of %d", n, len(chunks))
		}
	})
}
