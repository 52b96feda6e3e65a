package kit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"drover"
)

// maxAnswer limits the size of one answer: a page of the largest price list has about 6 MiB, and one of a thousand EC2
// instances with many long tags about 30.
const maxAnswer = 64 << 20

// ErrTooLarge is the error of reading an answer larger than maxAnswer.
var ErrTooLarge = fmt.Errorf("the response is larger than %d MiB", maxAnswer>>20)

// Transport sends an SDK's requests through a gate, with a token if there is one. It limits the size of every answer, and
// refuses incomplete ones.
type Transport struct {
	Gate
	Next  http.RoundTripper
	Name  func(*http.Request) string // the name under which a request is counted: no ids
	Rates func(call string) []string // the rates of the call; may be nil
	Keys  func(call string) []string // of which a successful answer must have one, in JSON; none: any answer counts; may be nil
	Token drover.Secret              // sent with requests; may be empty
}

// RoundTrip makes one request, unless it exceeds a rate.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if token := t.Token.Reveal(); token != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+token)
	}
	call := t.Name(r)
	var rates []string
	if t.Rates != nil {
		rates = t.Rates(call)
	}
	next := Bounded(t.Next)
	if t.Keys != nil {
		next = complete{next, t.Keys(call)}
	}
	return t.Send(r, next, call, rates...)
}

// NoRedirect is an http.Client's CheckRedirect that follows no redirect: it would lead away from the cloud, and take the
// token there.
func NoRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// complete refuses an answer that is not an error but has none of the keys, such as {}, null or a proxy's page: SDKs take
// it for an empty list, an object without an id, or an accepted change.
type complete struct {
	http.RoundTripper
	keys []string
}

// RoundTrip makes the request.
func (c complete) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := c.RoundTripper.RoundTrip(r)
	if err != nil || len(c.keys) == 0 || answer.StatusCode >= http.StatusBadRequest {
		return answer, err
	}
	text, err := io.ReadAll(answer.Body)
	answer.Body.Close()
	if err != nil {
		return nil, err
	}
	answer.Body = io.NopCloser(bytes.NewReader(text))
	var has map[string]json.RawMessage
	json.Unmarshal(text, &has) // anything but an object has no keys
	if !slices.ContainsFunc(c.keys, func(key string) bool { return len(has[key]) > 0 && string(has[key]) != "null" }) {
		return nil, fmt.Errorf("the response (HTTP %d) contains no %s", answer.StatusCode, strings.ReplaceAll(c.keys[0], "_", " "))
	}
	return answer, nil
}

// Bounded limits the size of every answer.
func Bounded(next http.RoundTripper) http.RoundTripper { return bounded{next} }

type bounded struct{ http.RoundTripper }

// RoundTrip makes the request.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.RoundTripper.RoundTrip(r)
	if err == nil && answer.Body != nil {
		answer.Body = Limited(answer.Body)
	}
	return answer, err
}

// Limited limits the size of an answer: reading more of its body fails with ErrTooLarge.
func Limited(body io.ReadCloser) io.ReadCloser {
	return short{http.MaxBytesReader(nil, body, maxAnswer)}
}

// short is the body of an answer of limited size.
type short struct{ io.ReadCloser }

func (s short) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	if _, is := errors.AsType[*http.MaxBytesError](err); is {
		err = ErrTooLarge
	}
	return n, err
}

// CloseIdleConnections implements the client's method of this name.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.Next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
