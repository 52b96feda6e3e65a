package ec2

import (
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"drover"
	"drover/driver/drivertest"
	"drover/driver/kit"
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

func TestClientsShareConnections(t *testing.T) {
	var opened atomic.Int32
	server := httptest.NewUnstartedServer(newFake())
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	c := imitate(t, nil, "endpoint: '"+server.URL+"'")
	const lists = 20
	for range lists {
		if _, err := c.List(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	if n := opened.Load(); n >= lists { // a connection may not be free yet when the next call is made
		t.Errorf("%d connections were opened", n)
	}
}

// BenchmarkClient is what a client costs, of which there is one for each call.
func BenchmarkClient(b *testing.B) {
	c := imitate(b, newFake(), "")
	for b.Loop() {
		c.api.ec2()
	}
}

func TestParametersAreWhereEC2Is(t *testing.T) {
	for _, test := range []struct{ keys, environment, want string }{
		{"region: eu-west-1", "", "https://ssm.eu-west-1.amazonaws.com/"},
		{"region: cn-north-1", "", "https://ssm.cn-north-1.amazonaws.com.cn/"},
		{"region: us-gov-west-1", "AWS_USE_FIPS_ENDPOINT", "https://ssm.us-gov-west-1.amazonaws.com/"},
		{"region: us-east-1", "AWS_USE_FIPS_ENDPOINT", "https://ssm-fips.us-east-1.amazonaws.com/"},
		{"region: us-east-1", "AWS_USE_DUALSTACK_ENDPOINT", "https://ssm.us-east-1.api.aws/"},
		{"{region: us-east-1, endpoint: 'http://ec2.example:5000'}", "", "http://ec2.example:5000/"},
	} {
		t.Run(test.keys+" "+test.environment, func(t *testing.T) {
			if test.environment != "" {
				t.Setenv(test.environment, "true")
			}
			var c Config
			drivertest.Must(t, yaml.Unmarshal([]byte(test.keys), &c))
			a, err := connect(t.Context(), c, nil, kit.Gate{})
			drivertest.Must(t, err)
			if got, err := a.parameters().endpoint(t.Context()); got != test.want || err != nil {
				t.Errorf("%s %v, want %s", got, err, test.want)
			}
		})
	}
}
