package ec2

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/google/go-cmp/cmp"

	"drover"
	"drover/driver"
	"drover/driver/drivertest"
	"drover/driver/kit"
)

// covers C2
func TestList(t *testing.T) {
	spot := candidate("m7i.large", "us-east-1a", drover.Spot)

	t.Run("shows an instance as EC2 describes it, without EC2's own tags", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := newFake()
			f.bootTime = time.Minute
			c := imitate(t, f, "")
			in, _ := drivertest.Create(t, c, request("one", spot))
			want := driver.Instance{ID: in.ID, ProviderType: "m7i.large", Zone: "us-east-1a", Market: drover.Spot, State: driver.Pending, Created: drover.TimeOf(time.Now()),
				Tags: map[string]string{"Name": "one", driver.TagFleet: "fleet", driver.TagName: "one"}}
			if diff := cmp.Diff(want, drivertest.Listed(t, c)[in.ID]); diff != "" {
				t.Error(diff)
			}
			time.Sleep(time.Minute)
			want.State, want.Addresses = driver.Running, driver.Addresses{Private: "10.0.0.7", Public: "192.0.2.7"}
			if diff := cmp.Diff(want, drivertest.Listed(t, c)[in.ID]); diff != "" {
				t.Error(diff)
			}
		})
	})
	t.Run("an interrupted instance is listed as reclaimed until it is destroyed, and never again", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := newFake()
			f.bootTime = time.Minute
			c := imitate(t, f, "")
			in, _ := drivertest.Create(t, c, request("one", spot))
			f.reclaim(in.ID)
			if got := drivertest.Listed(t, c)[in.ID]; !got.Reclaimed || got.State != driver.Stopping {
				t.Errorf("%+v", got)
			}
			time.Sleep(10 * time.Minute)
			if got := drivertest.Listed(t, c)[in.ID]; !got.Reclaimed {
				t.Errorf("%+v", got)
			}
			drivertest.Must(t, c.Destroy(t.Context(), in.ID))
			for range 3 {
				if got := drivertest.Listed(t, c); len(got) != 0 {
					t.Errorf("%+v", got)
				}
				if got, err := c.List(t.Context(), map[string]string{driver.TagName: "another"}); err != nil || len(got) != 0 {
					t.Errorf("%+v, %v", got, err)
				}
			}
			time.Sleep(2 * time.Hour)
			if drivertest.Listed(t, c); c.destroyed.Has(in.ID) {
				t.Error("the driver still remembers it")
			}
		})
	})
	t.Run("an instance that EC2 could not launch is listed as failed until it is destroyed", func(t *testing.T) {
		for code, want := range map[string]drover.ErrorKind{
			"Server.InsufficientInstanceCapacity": drover.KindCapacity, "Client.VolumeLimitExceeded": drover.KindQuota,
			"Client.InvalidKMSKey.InvalidState": drover.KindInvalid, "Client.InternalError": drover.KindTransient,
		} {
			f := newFake()
			c := imitate(t, f, "markets: [on_demand]")
			in, _ := drivertest.Create(t, c, request("one"))
			f.terminate(in.ID, code)
			if got := drivertest.Listed(t, c)[in.ID]; got.Failed == nil || got.Failed.Kind != want || !strings.HasSuffix(got.Failed.Message, ": it ended") {
				t.Errorf("%s: %+v, %v", code, got, got.Failed)
			}
			drivertest.Must(t, c.Destroy(t.Context(), in.ID))
			if got := drivertest.Listed(t, c); len(got) != 0 {
				t.Errorf("%s: %+v", code, got)
			}
		}
	})
	t.Run("a destroyed instance is listed while it is ending, but not as reclaimed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := newFake()
			f.bootTime = time.Minute
			c := imitate(t, f, "")
			in, _ := drivertest.Create(t, c, request("one", spot))
			drivertest.Must(t, c.Destroy(t.Context(), in.ID))
			if got := drivertest.Listed(t, c)[in.ID]; got.Reclaimed || got.State != driver.Stopping {
				t.Errorf("%+v", got)
			}
			time.Sleep(time.Minute)
			if got := drivertest.Listed(t, c); len(got) != 0 {
				t.Errorf("%+v", got)
			}
		})
	})
	t.Run("an incomplete list is an error", func(t *testing.T) {
		f := newFake()
		f.pageSize = 1
		c := imitate(t, f, "")
		drivertest.Create(t, c, request("one"))
		drivertest.Create(t, c, request("two"))
		c.api.gate.Limiter = kit.NewRateLimiter(map[string]kit.Rate{"DescribeInstances": {Burst: 1, PerSecond: 1}}, 1) // one more call is allowed
		drivertest.ListFails(t, c, drover.KindRateLimit)
	})
	t.Run("setting tags keeps the configured ones", func(t *testing.T) {
		f := newFake()
		c := imitate(t, f, "tags: {team: a}")
		in, _ := drivertest.Create(t, c, request("one"))
		drivertest.KeepsTags(t, c, in.ID, map[string]string{"Name": "one", "team": "a", driver.TagFleet: "fleet"})
	})
	t.Run("a spot instance does not stop, and a missing one does not start", func(t *testing.T) {
		c := imitate(t, newFake(), "")
		in, _ := drivertest.Create(t, c, request("one", spot))
		if err := c.Stop(t.Context(), in.ID); drover.KindOf(err) != drover.KindUnsupported {
			t.Error(err)
		}
		if err := c.Start(t.Context(), "i-nobody"); drover.KindOf(err) != drover.KindNotFound {
			t.Error(err)
		}
	})
}

func TestDescribe(t *testing.T) {
	gone := func(t *testing.T, c *cloud, id string, ended drover.Time) {
		t.Helper()
		if in, err := c.Describe(t.Context(), id); err == nil || drover.KindOf(err) != drover.KindNotFound || in.ID != "" || in.Ended != ended {
			t.Errorf("%s: %+v, %v", id, in, err)
		}
	}
	t.Run("an ending instance is described until it has ended, although EC2 shows it longer", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := newFake()
			f.bootTime = time.Minute
			c := imitate(t, f, "")
			in, _ := drivertest.Create(t, c, request("one"))
			time.Sleep(time.Hour)
			drivertest.Must(t, c.Destroy(t.Context(), in.ID))
			ended := drover.TimeOf(time.Now())
			if got, err := c.Describe(t.Context(), in.ID); err != nil || got.State != driver.Stopping || got.Ended != ended {
				t.Errorf("%+v, %v", got, err)
			}
			time.Sleep(time.Minute)
			gone(t, c, in.ID, ended)
			gone(t, c, "i-nobody", 0)
		})
	})
	t.Run("an interrupted instance is not found once it has been destroyed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := newFake()
			f.bootTime = time.Minute
			c := imitate(t, f, "")
			in, _ := drivertest.Create(t, c, request("one", candidate("m7i.large", "us-east-1a", drover.Spot)))
			f.reclaim(in.ID)
			time.Sleep(10 * time.Minute)
			if got, err := c.Describe(t.Context(), in.ID); err != nil || !got.Reclaimed {
				t.Errorf("%+v, %v", got, err)
			}
			drivertest.Must(t, c.Destroy(t.Context(), in.ID))
			gone(t, c, in.ID, 0)
		})
	})
	t.Run("a stopped instance is described", func(t *testing.T) {
		f := newFake()
		c := imitate(t, f, "")
		in, _ := drivertest.Create(t, c, request("one"))
		drivertest.Must(t, c.Stop(t.Context(), in.ID))
		if got, err := c.Describe(t.Context(), in.ID); err != nil || got.State != driver.Stopped {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

func TestDestroy(t *testing.T) {
	for _, code := range []string{"OperationNotPermitted", "UnauthorizedOperation"} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake()
			f.latency = time.Second
			c := imitate(t, f, "")
			var ids []string
			for _, name := range []string{"one", "two", "three"} {
				in, _ := drivertest.Create(t, c, request(name))
				ids = append(ids, in.ID)
			}
			f.immune = map[string]string{ids[1]: code}
			result := make([]error, len(ids))
			for i, id := range ids { // the last two share a call
				go func() { result[i] = c.Destroy(t.Context(), id) }()
				synctest.Wait()
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			if result[0] != nil || result[1] == nil || result[2] != nil || f.instances[ids[2]].ended.IsZero() {
				t.Errorf("%s: an instance that may not be terminated also keeps others: %v", code, result)
			}
		})
	}
}

// covers C7
func TestReap(t *testing.T) {
	f := newFake()
	f.pageSize = 1
	c := imitate(t, f, "")
	drivertest.Create(t, c, request("one"))
	f.volumes["vol-ours"] = map[string]string{driver.TagFleet: "fleet"}
	f.volumes["vol-theirs"] = map[string]string{driver.TagFleet: "other"}
	if diff := cmp.Diff([]string{"volume vol-ours"}, drivertest.Reaped(t, c, 0, driver.Active)); diff != "" {
		t.Errorf("of an active fleet: %s", diff)
	}
	drivertest.Create(t, c, request("two"))
	swept, err := driver.Reap(t.Context(), c, "fleet", drover.TimeOf(time.Now()), driver.Ended)
	kinds := kit.Each(swept, func(l driver.Leftover) string { return l.Kind })
	if diff := cmp.Diff([]string{"launch template", "key pair"}, kinds); diff != "" || err != nil {
		t.Errorf("of an ended fleet: %s %v", diff, err)
	}
	if len(f.templates)+len(f.keys) != 0 || len(f.volumes) != 1 {
		t.Errorf("left: %v %v %v", f.templates, f.keys, f.volumes)
	}
	for _, s := range append(swept, driver.Leftover{Kind: "volume", ID: "vol-ours"}) {
		if err := c.Remove(t.Context(), s); err != nil {
			t.Errorf("removing it again: %v", err)
		}
	}
	drivertest.Create(t, c, request("three")) // what the sweep removed is created again
}

// covers K9
func TestFindImages(t *testing.T) {
	c := imitate(t, newFake(), "")
	for ref, want := range map[string][]string{
		"ami-debian":            {"ami-debian"},
		"ami-nobody":            nil,
		"ssm:/images/debian":    {"ami-debian"},
		"136693071363/debian-*": {"ami-debian", "ami-older"},
		"debian-12-amd64-2025*": {"ami-older"},
	} {
		found, err := c.FindImages(t.Context(), ref, "amd64")
		var got []string
		for _, i := range found {
			if got = append(got, i.ID); i.Arch != "amd64" || i.Created == 0 {
				t.Errorf("%+v", i)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %s %v", ref, diff, err)
		}
	}
	if _, err := c.FindImages(t.Context(), "ssm:/nothing", ""); drover.KindOf(err) != drover.KindNotFound {
		t.Error(err)
	}
}

// metadata is an instance's metadata service that returns only the region.
type metadata struct{}

func (metadata) Do(r *http.Request) (*http.Response, error) {
	body := `{"region": "eu-north-1"}`
	if r.Method == http.MethodPut {
		body = "token"
	}
	return &http.Response{StatusCode: 200, Header: http.Header{"X-Aws-Ec2-Metadata-Token-Ttl-Seconds": {"60"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// covers C1
func TestOpen(t *testing.T) {
	t.Run("an invalid configuration is refused", func(t *testing.T) {
		for keys, kind := range map[string]drover.ErrorKind{
			"markets: [reserved]": drover.KindInvalid, "tags: {drover-fleet: x}": drover.KindInvalid, "volumes: [{size: 1Gi}]": drover.KindInvalid,
			"list_types: false": drover.KindInvalid, "profile: nobody": drover.KindInvalid, "subnet: x": drover.KindInvalid, "spot_allocation: luck": drover.KindInvalid,
			"volume: {size: 500Gi}": drover.KindInvalid, "volume: {device: /dev/sda1}": drover.KindInvalid, "volume: {type: gp9}": drover.KindInvalid,
			"volumes: [{device: /dev/sdf, size: 1Gi, type: gp9}]": drover.KindInvalid,
		} {
			if _, err := open(t.Context(), options(t, "fleet", keys, t.TempDir()), newFake()); err == nil || drover.AsError(err, drover.KindInvalid).Kind != kind {
				t.Errorf("%s: %v", keys, err)
			}
		}
		if _, err := open(t.Context(), options(t, "a b", "", t.TempDir()), newFake()); err == nil {
			t.Error("a fleet name with a space was accepted")
		}
	})
	t.Run("an invalid region is found without opening the cloud", func(t *testing.T) {
		var c Config
		if err := drivertest.Options(t, "aws", "ec2", "fleet", "region: us east", t.TempDir()).Decode(&c); err == nil || !strings.Contains(err.Error(), "region: ") {
			t.Error(err)
		}
	})
	t.Run("the region defaults to the host's own", func(t *testing.T) {
		o := options(t, "fleet", "", t.TempDir())
		o.Decode = drivertest.Options(t, "aws", "ec2", "fleet", "", t.TempDir()).Decode
		if _, err := open(t.Context(), o, newFake()); drover.KindOf(err) != drover.KindInvalid {
			t.Errorf("without a region: %v", err)
		}
		t.Setenv("AWS_EC2_METADATA_DISABLED", "false")
		c, err := open(t.Context(), o, metadata{})
		if err != nil || c.(*cloud).api.config.Region != "eu-north-1" {
			t.Errorf("%v, %v", c, err)
		}
	})
	t.Run("missing credentials are reported by the first call, not by Open", func(t *testing.T) {
		f := newFake()
		o := options(t, "fleet", "", t.TempDir())
		os.Unsetenv("AWS_ACCESS_KEY_ID")
		c, err := open(t.Context(), o, f)
		drivertest.Must(t, err)
		_, err = c.List(t.Context(), nil)
		if e := drover.AsError(err, ""); e.Kind != drover.KindAuthentication || e.Hint == "" {
			t.Errorf("%+v", e)
		}
	})
	t.Run("credentials that AWS refuses are an authentication error, but not those that it cannot issue at the moment", func(t *testing.T) {
		const refused = "<ErrorResponse><Error><Code>X</Code></Error></ErrorResponse>"
		for _, tt := range []struct {
			client aws.HTTPClient
			want   drover.ErrorKind
		}{{says{403, strings.NewReader(refused)}, drover.KindAuthentication}, {says{503, strings.NewReader(refused)}, drover.KindTransient}, {unreachable{}, drover.KindTransient}} {
			o := options(t, "fleet", "", t.TempDir())
			token := t.TempDir() + "/token"
			drivertest.Must(t, os.WriteFile(token, []byte("x"), 0o600))
			t.Setenv("AWS_WEB_IDENTITY_TOKEN_FILE", token)
			t.Setenv("AWS_ROLE_ARN", "arn:aws:iam::1:role/drover")
			os.Unsetenv("AWS_ACCESS_KEY_ID")
			c, err := open(t.Context(), o, tt.client)
			drivertest.Must(t, err)
			drivertest.ListFails(t, c, tt.want)
		}
	})
	t.Run("an unreachable metadata service means that there are no credentials", func(t *testing.T) {
		o := options(t, "fleet", "", t.TempDir())
		os.Unsetenv("AWS_ACCESS_KEY_ID")
		t.Setenv("AWS_EC2_METADATA_DISABLED", "false")
		c, err := open(t.Context(), o, unreachable{})
		drivertest.Must(t, err)
		drivertest.ListFails(t, c, drover.KindAuthentication)
	})
}

// unreachable is a network without connections.
type unreachable struct{}

func (unreachable) Do(*http.Request) (*http.Response, error) {
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
}
