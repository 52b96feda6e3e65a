package notice

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	// metadataURL is where the metadata servers of the large clouds answer.
	metadataURL = "http://169.254.169.254"
	// askTimeout bounds a request that is answered at once.
	askTimeout = 5 * time.Second
	// maxAnswer bounds an answer's body; the whole answer may have four times as much.
	maxAnswer = 64 << 10
)

// metadata is a metadata server.
type metadata struct{ address string }

// answer is a metadata server's response.
type answer struct {
	status int
	header textproto.MIMEHeader
	body   []byte
}

// newMetadata accepts a metadata server's URL only if its host is a link-local or loopback address: a name could lead
// anywhere.
func newMetadata(base string) (metadata, error) {
	u, err := url.Parse(base)
	if err != nil {
		return metadata{}, fmt.Errorf("the metadata server's address: %w", err)
	}
	ip, err := netip.ParseAddr(u.Hostname())
	if err != nil || u.Scheme != "http" || !ip.IsLinkLocalUnicast() && !ip.IsLoopback() {
		return metadata{}, fmt.Errorf("%q is not the address of a metadata server", base)
	}
	port := u.Port()
	if port == "" {
		port = "80"
	}
	return metadata{net.JoinHostPort(ip.String(), port)}, nil
}

// ask makes one request on its own connection and reads the whole answer.
func (m metadata) ask(ctx context.Context, limit time.Duration, method, path string, header ...string) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	a, err := m.exchange(ctx, request(m.address, method, path, header))
	if err != nil {
		return answer{}, fmt.Errorf("querying the metadata server for %s: %w", path, err)
	}
	return a, nil
}

// request returns a request's text. header alternates names and values.
func request(host, method, path string, header []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: drover\r\nConnection: close\r\nContent-Length: 0\r\n", method, path, host)
	for i := 0; i+1 < len(header); i += 2 {
		fmt.Fprintf(&b, "%s: %s\r\n", header[i], header[i+1])
	}
	b.WriteString("\r\n")
	return b.String()
}

func (m metadata) exchange(ctx context.Context, request string) (answer, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", m.address)
	if err != nil {
		return answer{}, err
	}
	defer conn.Close()
	unhook := context.AfterFunc(ctx, func() { conn.Close() })
	defer unhook()
	if _, err := io.WriteString(conn, request); err != nil {
		return answer{}, err
	}
	a, err := readAnswer(conn)
	if ctx.Err() != nil {
		return answer{}, context.Cause(ctx)
	}
	return a, err
}

// readAnswer reads a whole HTTP/1 answer.
func readAnswer(r io.Reader) (answer, error) {
	in := textproto.NewReader(bufio.NewReader(io.LimitReader(r, 4*maxAnswer)))
	line, err := in.ReadLine()
	if err != nil {
		return answer{}, err
	}
	var a answer
	version, rest, _ := strings.Cut(line, " ")
	code, _, _ := strings.Cut(rest, " ")
	if a.status, err = strconv.Atoi(code); err != nil || !strings.HasPrefix(version, "HTTP/1.") {
		return answer{}, fmt.Errorf("%.40q is not an HTTP response", line)
	}
	if a.header, err = in.ReadMIMEHeader(); err != nil {
		return answer{}, err
	}
	if strings.EqualFold(a.header.Get("Transfer-Encoding"), "chunked") {
		a.body, err = readChunks(in)
	} else {
		a.body, err = readBody(in.R, a.header.Get("Content-Length"))
	}
	return a, err
}

var errLong = errors.New("the response is too long")

// readBody reads a body of the length given, or up to the end of the connection.
func readBody(r io.Reader, length string) ([]byte, error) {
	if length == "" {
		body, err := io.ReadAll(io.LimitReader(r, maxAnswer+1))
		if len(body) > maxAnswer {
			return nil, errLong
		}
		return body, err
	}
	n, err := strconv.ParseUint(length, 10, 32)
	if err != nil || n > maxAnswer {
		return nil, errLong
	}
	body := make([]byte, n)
	_, err = io.ReadFull(r, body)
	return body, err
}

// readChunks reads a chunked body: pieces, each preceded by its length in hex.
func readChunks(in *textproto.Reader) (body []byte, err error) {
	for {
		line, err := in.ReadLine()
		if err != nil {
			return nil, err
		}
		size, _, _ := strings.Cut(line, ";")
		n, err := strconv.ParseUint(strings.TrimSpace(size), 16, 32)
		if err != nil || n > uint64(maxAnswer-len(body)) {
			return nil, errLong
		}
		if n == 0 {
			return body, nil
		}
		piece := make([]byte, n)
		if _, err := io.ReadFull(in.R, piece); err != nil {
			return nil, err
		}
		body = append(body, piece...)
		if line, err := in.ReadLine(); err != nil || line != "" {
			return nil, errors.Join(err, errors.New("a chunk of the response does not end where it should"))
		}
	}
}

// refused returns the error for an unexpected answer.
func (a answer) refused(what string) error {
	return fmt.Errorf("querying the metadata server for %s: it answered with %d: %.100q", what, a.status, a.body)
}
