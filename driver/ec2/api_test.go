package ec2

import (
	"net/http"
	"testing"
	"time"

	"drover"
)

// later is a fake by whose clock this host's is an hour slow.
type later struct{ *fake }

func (l later) Do(r *http.Request) (*http.Response, error) {
	now := time.Now().Add(time.Hour)
	l.mu.Lock()
	delete(l.broken, "StopInstances")
	if signed, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date")); err != nil || now.Sub(signed).Abs() > 5*time.Minute {
		l.broken["StopInstances"] = "RequestExpired"
	}
	l.mu.Unlock()
	answer, err := l.RoundTrip(r)
	if err == nil {
		answer.Header.Set("Date", now.UTC().Format(http.TimeFormat))
	}
	return answer, err
}

func TestAClockThatIsWrong(t *testing.T) {
	c := imitate(t, later{newFake()}, "")
	if err := c.Stop(t.Context(), "i-none"); drover.KindOf(err) != drover.KindAuthentication {
		t.Errorf("the first call: %v", err)
	}
	if err := c.Stop(t.Context(), "i-none"); drover.KindOf(err) != drover.KindNotFound {
		t.Errorf("the second: %v", err)
	}
}

// BenchmarkClient is what a client costs, of which there is one for each call.
func BenchmarkClient(b *testing.B) {
	c := imitate(b, newFake(), "")
	for b.Loop() {
		c.api.ec2()
	}
}
