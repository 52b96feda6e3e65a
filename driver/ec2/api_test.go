package ec2

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"drover"
	"drover/driver/drivertest"
	"drover/driver/kit"
)

// later is a fake whose clock is an hour ahead of the host's.
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

func TestWrongClock(t *testing.T) {
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

// BenchmarkRequest measures the cost of a signed request.
func BenchmarkRequest(b *testing.B) {
	c := imitate(b, newFake(), "")
	for b.Loop() {
		if _, err := c.api.request(b.Context(), "DescribeInstances", filtered(filter("tag:a", "b"))); err != nil {
			b.Fatal(err)
		}
	}
}

// covers C1
func TestEndpoints(t *testing.T) {
	file := func(lines string) string {
		return "[default]\n" + lines + "\n[services test]\nec2 =\n  endpoint_url = http://file.example\n"
	}
	const fips, dual = "AWS_USE_FIPS_ENDPOINT=true", "AWS_USE_DUALSTACK_ENDPOINT=true"
	for _, test := range []struct{ call, keys, environment, file, want string }{
		{"StopInstances", "region: eu-west-1", "", "", "https://ec2.eu-west-1.amazonaws.com/"},
		{"StopInstances", "region: cn-north-1", "", "", "https://ec2.cn-north-1.amazonaws.com.cn/"},
		{"StopInstances", "region: us-isob-east-1", "", "", "https://ec2.us-isob-east-1.sc2s.sgov.gov/"},
		{"StopInstances", "region: us-gov-west-1", fips, "", "https://ec2.us-gov-west-1.amazonaws.com/"},
		{"StopInstances", "region: us-east-1", fips, "", "https://ec2-fips.us-east-1.amazonaws.com/"},
		{"StopInstances", "region: cn-north-1", dual, "", "https://ec2.cn-north-1.api.amazonwebservices.com.cn/"},
		{"StopInstances", "region: us-east-1", fips + " " + dual, "", "https://ec2-fips.us-east-1.api.aws/"},
		{"StopInstances", "{region: us-east-1, endpoint: 'http://ec2.example:5000'}", "AWS_ENDPOINT_URL=http://all.example", "", "http://ec2.example:5000/"},
		{"StopInstances", "{region: us-east-1, endpoint: 'http://ec2.example/api'}", "", "", "http://ec2.example/api"},
		{"StopInstances", "region: us-east-1", "AWS_ENDPOINT_URL=http://all.example", file("services = test"), "http://all.example/"},
		{"StopInstances", "region: us-east-1", "AWS_ENDPOINT_URL=http://all.example AWS_ENDPOINT_URL_EC2=http://its.example", "", "http://its.example/"},
		{"StopInstances", "region: us-east-1", "", file("services = test"), "http://file.example/"},
		{"StopInstances", "region: us-east-1", "", file("endpoint_url = http://all.example"), "http://all.example/"},
		{"StopInstances", "region: us-east-1", "AWS_ENDPOINT_URL_EC2=http://its.example AWS_IGNORE_CONFIGURED_ENDPOINT_URLS=true", "", "https://ec2.us-east-1.amazonaws.com/"},
		{"GetParameter", "region: eu-west-1", "AWS_ENDPOINT_URL_EC2=http://its.example", "", "https://ssm.eu-west-1.amazonaws.com/"},
		{"GetParameter", "region: cn-north-1", "", "", "https://ssm.cn-north-1.amazonaws.com.cn/"},
		{"GetParameter", "region: us-gov-west-1", fips, "", "https://ssm.us-gov-west-1.amazonaws.com/"},
		{"GetParameter", "region: us-east-1", fips, "", "https://ssm-fips.us-east-1.amazonaws.com/"},
		{"GetParameter", "region: us-east-1", dual, "", "https://ssm.us-east-1.api.aws/"},
		{"GetParameter", "{region: us-east-1, endpoint: 'http://ec2.example:5000'}", "", "", "http://ec2.example:5000/"},
		{"GetProducts", "region: eu-west-1", "", "", "https://api.pricing.us-east-1.amazonaws.com/"},
		{"GetProducts", "region: cn-north-1", "", "", "https://api.pricing.cn-northwest-1.amazonaws.com.cn/"},
		{"GetProducts", "region: eu-west-1", "AWS_ENDPOINT_URL_PRICING=http://its.example", "", "http://its.example/"},
	} {
		t.Run(strings.Join([]string{test.call, test.keys, test.environment, test.file}, " "), func(t *testing.T) {
			isolate(t)
			os.Unsetenv("AWS_ENDPOINT_URL") // an empty value would count as set
			for _, one := range strings.Fields(test.environment) {
				name, value, _ := strings.Cut(one, "=")
				t.Setenv(name, value)
			}
			if test.file != "" {
				t.Setenv("AWS_CONFIG_FILE", t.TempDir()+"/config")
				drivertest.Must(t, os.WriteFile(os.Getenv("AWS_CONFIG_FILE"), []byte(test.file), 0o600))
			}
			var c Config
			drivertest.Must(t, yaml.Unmarshal([]byte(test.keys), &c))
			a, err := connect(t.Context(), c, nil, kit.Gate{})
			drivertest.Must(t, err)
			if got, err := a.endpoint(t.Context(), serviceOf(test.call)); got != test.want || err != nil {
				t.Errorf("%s %v, want %s", got, err, test.want)
			}
		})
	}
}

// covers C7
func TestForms(t *testing.T) {
	for _, test := range []struct {
		name, raw string
		want      map[string]string
	}{
		{"lists have singular names and are numbered from 1", `{"BlockDeviceMappings": [{"DeviceName": "a"}, {"Ebs": {"VolumeSize": 8, "Encrypted": false}}], "SecurityGroups": ["x", "y"],
			"TagSpecifications": [{"Tags": [{"Key": "a & b", "Value": "=é"}]}]}`, map[string]string{
			"BlockDeviceMapping.1.DeviceName": "a", "BlockDeviceMapping.2.Ebs.VolumeSize": "8", "BlockDeviceMapping.2.Ebs.Encrypted": "false",
			"SecurityGroup.1": "x", "SecurityGroup.2": "y", "TagSpecification.1.Tag.1.Key": "a & b", "TagSpecification.1.Tag.1.Value": "=é"}},
		{"some lists have irregular names", `{"NetworkInterfaces": [{"Groups": ["g"], "Ipv4Prefixes": [{"Ipv4Prefix": "4"}], "Ipv6Prefixes": [{"Ipv6Prefix": "6"}],
			"Ipv6Addresses": [{"Ipv6Address": "a"}], "PrivateIpAddresses": [{"Primary": true}]}], "SecondaryInterfaces": [{"PrivateIpAddresses": [{"PrivateIpAddress": "p"}]}]}`, map[string]string{
			"NetworkInterface.1.SecurityGroupId.1": "g", "NetworkInterface.1.Ipv4Prefix.1.Ipv4Prefix": "4", "NetworkInterface.1.Ipv6Prefix.1.Ipv6Prefix": "6",
			"NetworkInterface.1.Ipv6Addresses.1.Ipv6Address": "a", "NetworkInterface.1.PrivateIpAddresses.1.Primary": "true",
			"SecondaryInterface.1.PrivateIpAddress.1.PrivateIpAddress": "p"}},
		{"numbers have no exponent", `{"InstanceRequirements": {"MemoryMiB": {"Min": 1048576}, "MemoryGiBPerVCpu": {"Min": 0.5}, "TotalLocalStorageGB": {"Max": 123456789012}}}`, map[string]string{
			"InstanceRequirements.MemoryMiB.Min": "1048576", "InstanceRequirements.MemoryGiBPerVCpu.Min": "0.5", "InstanceRequirements.TotalLocalStorageGB.Max": "123456789012"}},
		{"nulls, empty objects and empty lists are left out, but not empty strings", `{"CpuOptions": {}, "EbsOptimized": null, "Placement": null, "SecurityGroupIds": [], "BlockDeviceMappings": [{"NoDevice": ""}]}`,
			map[string]string{"BlockDeviceMapping.1.NoDevice": ""}},
	} {
		t.Run(test.name, func(t *testing.T) {
			data, err := readTemplate(test.raw)
			drivertest.Must(t, err)
			body, err := encode("CreateLaunchTemplate", data)
			drivertest.Must(t, err)
			form, err := url.ParseQuery(string(body))
			drivertest.Must(t, err)
			want := url.Values{"Action": {"CreateLaunchTemplate"}, "Version": {"2016-11-15"}}
			for key, value := range test.want {
				want.Set(key, value)
			}
			if diff := cmp.Diff(want, form); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// says answers every request with a status and a body.
type says struct {
	status int
	body   io.Reader
}

func (s says) Do(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: s.status, Status: http.StatusText(s.status), Body: io.NopCloser(s.body)}, nil
}

// zeros is an endless body.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// covers C5
func TestInvalidAnswers(t *testing.T) {
	const listed = `<DescribeInstancesResponse><reservationSet><item><instancesSet><item><instanceId>i-1</instanceId></item></instancesSet></item></reservationSet>`
	for _, test := range []struct {
		name, want string
		says       says
	}{
		{"an HTML page", "the response to DescribeInstances did not come from EC2", says{200, strings.NewReader("<html><body>Welcome</body></html>")}},
		{"an empty body", "the response to DescribeInstances did not come from EC2", says{200, strings.NewReader("")}},
		{"a truncated answer", "unexpected EOF", says{200, strings.NewReader(listed)}},
		{"an invalid time", "cannot parse", says{200, strings.NewReader(strings.Replace(listed, "<instanceId>", "<launchTime>soon</launchTime><instanceId>", 1))}},
		{"an endless answer", "the response is larger than 64 MiB", says{200, zeros{}}},
		{"no error code", "the response to DescribeInstances has the status Bad Gateway", says{502, strings.NewReader("<html>Bad Gateway</html>")}},
	} {
		t.Run(test.name, func(t *testing.T) {
			found, err := imitate(t, test.says, "").List(t.Context(), nil)
			if len(found) > 0 || drover.KindOf(err) != drover.KindTransient || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, %v", found, err)
			}
		})
	}
	t.Run("an error names the call and the request", func(t *testing.T) {
		err := imitate(t, newFake(), "").api.do(t.Context(), "StopInstances", params{"InstanceIds": []string{"i-none"}}, nil)
		if want := "StopInstances, request r-1: api error InvalidInstanceID.NotFound: "; err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	})
	t.Run("a region that cannot be part of a host name is refused", func(t *testing.T) {
		o := drivertest.Options(t, "aws", "ec2", "fleet", "region: us-east-1.example/", t.TempDir())
		if _, err := open(t.Context(), o, newFake()); drover.KindOf(err) != drover.KindInvalid {
			t.Error(err)
		}
	})
}
