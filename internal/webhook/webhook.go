// Package webhook notifies people and programs elsewhere by posting messages to their URLs.
//
// Whoever may submit a batch may name the URL, so it is not trusted: after name resolution and redirects, it must lead
// to a public address, unless the configuration allows the host. Messages are signed with the configuration's secret,
// if it has one.
package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"drover"
)

// Config is how messages are signed, and which hosts may receive them although they are not public.
type Config struct {
	Secret  drover.Secret
	Allow   []string // host names or addresses, without ports
	Trusted bool     // whoever runs the controller named the URL, so it may lead anywhere
}

// Message is a message about a batch. Its fields are the body, as JSON.
type Message struct {
	Event     string                  `json:"event"` // drover.NotifyFailed or drover.NotifyFinal
	Batch     string                  `json:"batch"`
	User      string                  `json:"user,omitempty"`
	FirstJob  int64                   `json:"first_job"` // its number; those of the other jobs follow
	Jobs      int                     `json:"jobs"`
	Counts    map[drover.JobState]int `json:"counts"` // of the jobs, elements of arrays one by one
	Text      string                  `json:"text"`   // for people
	Submitted drover.Time             `json:"submitted"`
}

// SignatureHeader has the time at which a message was sent, in seconds, and its signature: t=TIME,v1=HEX, where HEX is
// the HMAC-SHA256 of TIME, a dot and the body.
const SignatureHeader = "Drover-Signature"

const (
	timeout      = 15 * time.Second
	maxRedirects = 3
	maxAnswer    = 4 << 10 // bytes read of an answer
)

// Send posts a message about a batch.
func Send(ctx context.Context, c Config, to string, m Message) error {
	return Post(ctx, c, to, m.Text, m)
}

// Post posts m as JSON, or only its text to receivers that read nothing else. KindInvalid: the address is not allowed,
// or the receiver refuses the message permanently; KindTransient: it may be tried again.
func Post(ctx context.Context, c Config, to, text string, m any) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	target, err := url.Parse(to)
	if err != nil {
		return drover.Errorf(drover.KindInvalid, "the URL to post to is invalid: %v", withoutURL(err))
	}
	body, kind, err := format(target, text, m)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return drover.Errorf(drover.KindInvalid, "the URL to post to is invalid: %v", withoutURL(err))
	}
	request.Header.Set("Content-Type", kind)
	request.Header.Set("User-Agent", "drover")
	if secret := c.Secret.Reveal(); secret != "" {
		request.Header.Set(SignatureHeader, sign(secret, time.Now(), body))
	}
	answer, err := c.client().Do(request)
	if err != nil {
		if own, ok := errors.AsType[*drover.Error](err); ok {
			return drover.Errorf(own.Kind, "posting to %s: %s", target.Host, own.Message).WithHint("%s", own.Hint)
		}
		return drover.Errorf(drover.KindTransient, "posting to %s: %v", target.Host, withoutURL(err))
	}
	defer answer.Body.Close()
	said, _ := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	switch {
	case answer.StatusCode < 300:
		return nil
	case answer.StatusCode >= 500 || answer.StatusCode == http.StatusTooManyRequests:
		return drover.Errorf(drover.KindTransient, "%s answered with %s", target.Host, answer.Status)
	}
	return drover.Errorf(drover.KindInvalid, "%s answered with %s: %.200s", target.Host, answer.Status, said)
}

// withoutURL returns an error without the address in it: whoever knows that can post.
func withoutURL(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// format returns the body in the receiver's format: JSON with only the text for Slack, plain text for ntfy, and the
// whole message for all others.
func format(to *url.URL, text string, what any) (body []byte, kind string, err error) {
	switch host := to.Hostname(); {
	case host == "hooks.slack.com":
		what = map[string]string{"text": text}
	case host == "ntfy.sh" || strings.HasPrefix(host, "ntfy."):
		return []byte(text), "text/plain; charset=utf-8", nil
	}
	body, err = json.Marshal(what)
	return body, "application/json", err
}

func sign(secret string, now time.Time, body []byte) string {
	at := strconv.FormatInt(now.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "%s.%s", at, body)
	return "t=" + at + ",v1=" + hex.EncodeToString(mac.Sum(nil))
}

// client follows a few redirects, uses no proxy, and connects only to public addresses and to allowed hosts. A redirect
// that would turn the post into a GET without the message (301, 302, 303) is the answer.
func (c Config) client() *http.Client {
	return &http.Client{
		Transport: &http.Transport{DialContext: c.dial, DisableKeepAlives: true, TLSHandshakeTimeout: timeout, ResponseHeaderTimeout: timeout},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if len(via) > maxRedirects {
				return drover.Errorf(drover.KindInvalid, "more than %d redirects", maxRedirects)
			}
			if r.Method != http.MethodPost {
				return http.ErrUseLastResponse
			}
			r.Header.Del("Referer") // the address, which may be a secret
			return nil
		},
	}
}

func (c Config) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	d := net.Dialer{Timeout: timeout}
	if !c.Trusted && !slices.ContainsFunc(c.Allow, func(allowed string) bool { return strings.EqualFold(allowed, host) }) {
		d.Control = func(_, resolved string, _ syscall.RawConn) error { return checkPublic(host, resolved) }
	}
	return d.DialContext(ctx, network, address)
}

// special lists the addresses that are not public, or that contain an IPv4 address: those that IANA's registries of
// special-purpose addresses list as not globally reachable, gateways to IPv4 (RFC 6052, RFC 3056), and the address at
// which Azure's hosts answer their VMs. IPv6 addresses outside 2000::/3 are not public either.
var special = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "168.63.129.16/32", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24",
	"192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/3",
	"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
)

var publicIPv6 = netip.MustParsePrefix("2000::/3")

func prefixes(texts ...string) (all []netip.Prefix) {
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

// checkPublic refuses an address that a name was resolved to and that is not public.
func checkPublic(host, resolved string) error {
	at, err := netip.ParseAddrPort(resolved)
	if err != nil {
		return drover.Errorf(drover.KindInvalid, "%v", err)
	}
	ip := at.Addr().Unmap()
	if ip.Is6() && !publicIPv6.Contains(ip) || slices.ContainsFunc(special, func(p netip.Prefix) bool { return p.Contains(ip) }) {
		return drover.Errorf(drover.KindInvalid, "%s is at %v, which is not a public address", host, ip).
			WithHint("the controller's operator may allow it: notify: {allow: [%s]}", host)
	}
	return nil
}
