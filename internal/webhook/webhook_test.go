package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"drover"
)

var final = Message{Event: drover.NotifyFinal, Batch: "hello", FirstJob: 7, Jobs: 2, Counts: map[drover.JobState]int{drover.JobSucceeded: 2}, Text: "batch hello: 2 jobs, 2 succeeded"}

func TestSend(t *testing.T) {
	var got struct {
		signature, kind string
		body            []byte
	}
	status := http.StatusOK
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/away" {
			http.Redirect(w, r, "http://169.254.169.254/latest", http.StatusTemporaryRedirect)
			return
		}
		got.signature, got.kind = r.Header.Get(SignatureHeader), r.Header.Get("Content-Type")
		got.body, _ = io.ReadAll(r.Body)
		w.WriteHeader(status)
	}))
	defer s.Close()
	allowed := Config{Secret: drover.NewSecret("s3cret"), Allow: []string{"127.0.0.1"}}

	t.Run("a message is sent as signed JSON", func(t *testing.T) {
		if err := Send(t.Context(), allowed, s.URL, final); err != nil {
			t.Fatal(err)
		}
		var m Message
		if err := json.Unmarshal(got.body, &m); err != nil || m.Text != final.Text || m.FirstJob != 7 || got.kind != "application/json" {
			t.Errorf("got %s as %s (%v)", got.body, got.kind, err)
		}
		at, signature, _ := strings.Cut(strings.TrimPrefix(got.signature, "t="), ",v1=")
		mac := hmac.New(sha256.New, []byte("s3cret"))
		mac.Write([]byte(at + "." + string(got.body)))
		if signature != hex.EncodeToString(mac.Sum(nil)) {
			t.Errorf("the signature is %s", got.signature)
		}
	})
	t.Run("without a secret, a message is not signed", func(t *testing.T) {
		if err := Send(t.Context(), Config{Allow: []string{"127.0.0.1"}}, s.URL, final); err != nil || got.signature != "" {
			t.Errorf("got %q, %v", got.signature, err)
		}
	})
	t.Run("an address that is not public is refused, even behind a name or a redirect", func(t *testing.T) {
		port := s.URL[strings.LastIndex(s.URL, ":"):]
		for name, c := range map[string]struct {
			to     string
			config Config
		}{
			"loopback":           {s.URL, Config{}},
			"a loopback name":    {"http://localhost" + port, Config{}},
			"a redirect":         {s.URL + "/away", allowed},
			"a private address":  {"http://10.1.2.3/", Config{}},
			"link-local":         {"http://169.254.169.254/", Config{}},
			"mapped loopback":    {"http://[::ffff:127.0.0.1]" + port, Config{}},
			"carrier-grade NAT":  {"http://100.64.1.1/", Config{}},
			"behind NAT64":       {"http://[64:ff9b::7f00:1]/", Config{}},
			"unspecified":        {"http://0.0.0.0" + port, Config{}},
			"a reserved address": {"http://240.0.0.1/", Config{}},
			"benchmarking":       {"http://198.18.0.1/", Config{}},
			"the host of a VM":   {"http://168.63.129.16/", Config{}},
			"IPv6 site-local":    {"http://[fec0::1]/", Config{}},
			"Teredo":             {"http://[2001::1]/", Config{}},
			"IPv4 within IPv6":   {"http://[::7f00:1]/", Config{}},
		} {
			if err := Send(t.Context(), c.config, c.to, final); drover.KindOf(err) != drover.KindInvalid || !strings.Contains(err.Error(), "not a public address") {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
	t.Run("a failing receiver gets another try, one that refuses does not", func(t *testing.T) {
		for code, want := range map[int]drover.ErrorKind{503: drover.KindTransient, 429: drover.KindTransient, 404: drover.KindInvalid} {
			status = code
			if err := Send(t.Context(), allowed, s.URL, final); drover.KindOf(err) != want {
				t.Errorf("%d: %v", code, err)
			}
		}
		s.Close()
		if err := Send(t.Context(), allowed, s.URL+"/services/s3cret", final); drover.KindOf(err) != drover.KindTransient || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("no receiver: %v", err)
		}
	})
}

func TestRedirects(t *testing.T) {
	status, arrived, referer := 0, "", ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/old" {
			http.Redirect(w, r, "/new", status)
			return
		}
		body, _ := io.ReadAll(r.Body)
		arrived, referer = r.Method+" "+string(body), r.Referer()
	}))
	defer s.Close()
	post := func() error {
		arrived = ""
		return Post(t.Context(), Config{Trusted: true}, s.URL+"/old?token=s3cret", "", "hello")
	}
	t.Run("one that keeps the message is followed, without revealing the first address", func(t *testing.T) {
		for _, status = range []int{307, 308} {
			if err := post(); err != nil || arrived != `POST "hello"` || referer != "" {
				t.Errorf("%d: %q arrived from %q (%v)", status, arrived, referer, err)
			}
		}
	})
	t.Run("one that would drop the message is a failure", func(t *testing.T) {
		for _, status = range []int{301, 302, 303} {
			if err := post(); drover.KindOf(err) != drover.KindInvalid || arrived != "" {
				t.Errorf("%d: %q arrived (%v)", status, arrived, err)
			}
		}
	})
}

func TestFormat(t *testing.T) {
	for to, want := range map[string]string{
		"https://hooks.slack.com/services/x": `{"text":"batch hello: 2 jobs, 2 succeeded"}`,
		"https://ntfy.sh/mine":               "batch hello: 2 jobs, 2 succeeded",
		"https://ntfy.example.org/mine":      "batch hello: 2 jobs, 2 succeeded",
	} {
		u, _ := url.Parse(to)
		if body, _, err := format(u, final.Text, final); string(body) != want || err != nil {
			t.Errorf("the body for %s is %s (%v)", to, body, err)
		}
	}
}
