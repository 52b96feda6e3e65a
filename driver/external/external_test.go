package external_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"drover"
	"drover/driver"
	"drover/driver/drivertest"
	"drover/driver/external"
	"drover/driver/middleware"
	"drover/internal/config"
)

// open opens a cloud with these configuration keys.
func open(ctx context.Context, keys, fleet, folder string, log *slog.Logger) (driver.Cloud, error) {
	text := "version: 1\nclouds:\n  it: {driver: external, " + keys + "}\n"
	c, err := config.Parse("drover.yaml", []byte(text), folder)
	if err != nil {
		return nil, err
	}
	return external.Open(ctx, driver.Options{Name: "it", Fleet: fleet, Folder: folder, Dir: folder, Decode: c.Clouds[0].Decode, Log: log})
}

const hello = `[ "$1" = open ] && echo '{"result": {}}' && exit
`

func TestOpen(t *testing.T) {
	for _, tt := range []struct{ name, keys, said, want string }{
		{"the command must name a program", `command: []`, "", "must specify a program"},
		{"the program must exist", `command: [./missing]`, "", "no such file"},
		{"an unknown protocol is refused", `command: [x], protocol: telepathy`, "", "telepathy"},
		{"the timeout must be positive", `command: [x], timeout: 0s`, "", "timeout"},
		{"an unknown value of host_keys is refused", "", `{"result": {"host_keys": "whispered"}}`, "whispered"},
		{"an unknown format of notices is refused", "", `{"result": {"notices": "smoke"}}`, `notices is "smoke", which is not one of ec2, gce, azure, file`},
		{"a billing period must be at most an hour", "", `{"result": {"billing_period_seconds": 7200}}`, "billing_period_seconds is 7200"},
		{"an unknown call is refused", "", `{"result": {"calls": ["dance"]}}`, "dance"},
		{"stop_saves requires stop_start", "", `{"result": {"stop_saves": true}}`, "stop_saves"},
		{"nodes must have different names", "", `{"result": {"node_id": "ours://all"}}`, `node_id is "ours://all"; it must have the form ours://{zone}/{id}`},
		{"a list lag must be a duration", "", `{"result": {"list_lag": "soon"}}`, `list_lag is "soon", which is not a duration between 0s and 1h0m0s`},
		{"a list lag must not be negative", "", `{"result": {"list_lag": "-1s"}}`, "list_lag"},
		{"a list lag must be at most an hour", "", `{"result": {"list_lag": "2h"}}`, "list_lag"},
		{"verified host keys require the call verify_host_key", "", `{"result": {"host_keys": "verified"}}`, "verify_host_key"},
		{"the program may refuse its options", "", `{"error": {"kind": "invalid", "message": "no region"}}`, "no region"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			keys := tt.keys
			if keys == "" {
				keys = "command: [" + script(t, "echo '"+tt.said+"'") + "]"
			}
			_, err := open(t.Context(), keys, "f", t.TempDir(), nil)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q in it", err, tt.want)
			}
		})
	}
	t.Run("a program's calls decide which interfaces its cloud has", func(t *testing.T) {
		for _, can := range [][3]bool{{}, {true, false, false}, {false, true, false}, {false, false, true}, {true, true, false}, {true, false, true}, {false, true, true}, {true, true, true}} {
			calls := "[]"
			if can[2] {
				calls = `["describe"]`
			}
			said := fmt.Sprintf(`{"result": {"stop_start": %v, "grow_disk": %v, "calls": %s}}`, can[0], can[1], calls)
			c, err := open(t.Context(), "command: ["+script(t, "echo '"+said+"'")+"]", "f", t.TempDir(), nil)
			if err != nil {
				t.Fatal(err)
			}
			_, starts := driver.As[driver.Starter](c)
			_, grows := driver.As[driver.DiskGrower](c)
			_, describes := driver.As[driver.Describer](c)
			if got := [3]bool{starts, grows, describes}; got != can || c.Capabilities().Describe != describes {
				t.Errorf("starts, grows, describes: %v, want %v; %+v", got, can, c.Capabilities())
			}
		}
	})
	t.Run("the list lag defaults to half a minute", func(t *testing.T) {
		for said, want := range map[string]time.Duration{`{}`: driver.DefaultListLag, `{"list_lag": "2m"}`: 2 * time.Minute, `{"list_lag": "0s"}`: 0} {
			c, err := open(t.Context(), "command: ["+script(t, `echo '{"result": `+said+`}'`)+"]", "f", t.TempDir(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if lag := c.Capabilities().Lag(); lag != want {
				t.Errorf("%s: %v", said, lag)
			}
		}
	})
}

// covers C1 C7
func TestCallsPassOnRequestsAndReplies(t *testing.T) {
	const says = `case $1 in
open) echo '{"result": {"stop_start": true, "stop_saves": true, "grow_disk": true, "calls": ["strays"]}}';;
strays) echo '{"result": {"strays": [{"kind": "key", "id": "k", "tags": {"drover-fleet": "f"}, "shared": true}, {"kind": "disk", "id": "d", "created": "2026-02-03T04:05:06Z"}]}}';;
*) echo '{"result": {}}';;
esac
printf '%s\n' "$request" >>"${0%/*}/requests"`
	program := script(t, says)
	c, err := open(t.Context(), "command: ["+program+"], options: {region: north}", "f", t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	starter, _ := driver.As[driver.Starter](c)
	grower, _ := driver.As[driver.DiskGrower](c)
	reaper, _ := driver.As[driver.Reaper](c)
	left, err := reaper.Leftovers(t.Context(), "f")
	made := drover.TimeOf(time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC))
	want := []driver.Leftover{
		{Kind: "key", ID: "k", Tags: map[string]string{driver.TagFleet: "f"}, Shared: true}, {Kind: "disk", ID: "d", Created: made},
	}
	if diff := cmp.Diff(want, left); diff != "" || err != nil {
		t.Errorf("leftovers: %v %s", err, diff)
	}
	err = errors.Join(starter.Stop(t.Context(), "i"), starter.Start(t.Context(), "i"), grower.GrowDisk(t.Context(), "i", drover.GiB), reaper.Remove(t.Context(), want[1]))
	if err != nil || !c.Capabilities().StopSaves {
		t.Errorf("%v, %+v", err, c.Capabilities())
	}
	requests, err := os.ReadFile(filepath.Join(filepath.Dir(program), "requests"))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		`"call":"stop","cloud":"it","fleet":"f"`, `"options":{"region":"north"},"args":{"id":"i"}`, `"call":"start",`, `"args":{"id":"i","disk_bytes":1073741824}`,
		`"args":{"kind":"disk","id":"d","tags":null,"created":"2026-02-03T04:05:06Z"}`,
	} {
		if !strings.Contains(string(requests), part) {
			t.Errorf("no request contains %s:\n%s", part, requests)
		}
	}
	t.Run("a cloud without a fleet is refused", func(t *testing.T) {
		if _, err := open(t.Context(), "command: ["+program+"]", "", t.TempDir(), nil); drover.KindOf(err) != drover.KindInvalid {
			t.Errorf("%v", err)
		}
	})
}

func TestAttribute(t *testing.T) {
	const can = `{"result": {"calls": ["attribute"]}}`
	for _, tt := range []struct {
		name, opens, said, want string
		kind                    drover.ErrorKind
	}{
		{"a text is returned unchanged", can, `{"result": {"value": "a\nb"}}`, "a\nb", ""},
		{"an empty text is a value", can, `{"result": {"value": ""}}`, "", ""},
		{"a missing value is transient", can, `{"result": {}}`, "", drover.KindTransient},
		{"a missing attribute is not found", can, `{"error": {"kind": "not_found", "message": "none"}}`, "", drover.KindNotFound},
		{"a program without the call is not called", `{"result": {}}`, `{"result": {"value": "a"}}`, "", drover.KindUnsupported},
	} {
		t.Run(tt.name, func(t *testing.T) {
			program := script(t, "case $1 in open) echo '"+tt.opens+"';; attribute) case $request in *'\"args\":{\"name\":\"pools\"}'*) printf '%s\\n' '"+tt.said+"';; esac;; esac")
			c, err := open(t.Context(), "command: ["+program+"]", "f", t.TempDir(), nil)
			if err != nil {
				t.Fatal(err)
			}
			attributes, _ := driver.As[driver.Attributes](c)
			text, err := attributes.Attribute(t.Context(), "pools")
			if text != tt.want || err != nil && drover.KindOf(err) != tt.kind || err == nil && tt.kind != "" {
				t.Errorf("%q, %v", text, err)
			}
		})
	}
}

func TestDescribe(t *testing.T) {
	const one = `{"id":"a","type":"t","zone":"z","market":"spot","state":"stopped","tags":{"drover-fleet":"f"}}`
	for _, tt := range []struct {
		name, said string
		want       drover.ErrorKind
	}{
		{"a stopped instance is described", `{"result":{"instance":` + one + `}}`, ""},
		{"a stopped instance may have the end of its bill", `{"result":{"instance":` + strings.Replace(one, `{`, `{"ended":"2026-02-03T04:05:06Z",`, 1) + `}}`, ""},
		{"an instance that is gone is not found", `{"error":{"kind":"not_found","message":"it is gone"}}`, drover.KindNotFound},
		{"an ended instance is not found, but may have its end", `{"result":{"ended":"2026-02-03T04:05:06Z"}}`, drover.KindNotFound},
		{"a result without an instance is transient", `{"result":{}}`, drover.KindTransient},
		{"an invalid instance is transient", `{"result":{"instance":{"id":"a","state":"dreaming"}}}`, drover.KindTransient},
		{"another instance is transient", `{"result":{"instance":` + strings.Replace(one, `"a"`, `"b"`, 1) + `}}`, drover.KindTransient},
		{"a missing reply is transient", ``, drover.KindTransient},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := script(t, `[ "$1" = open ] && echo '{"result": {"calls": ["describe"]}}' && exit
printf '%s %s\n' "$1" "$request" >"$0.got"; echo '`+tt.said+`'`)
			c, err := open(t.Context(), "command: ["+path+"]", "f", t.TempDir(), nil)
			if err != nil {
				t.Fatal(err)
			}
			describer, _ := driver.As[driver.Describer](middleware.ForFleet(c, "f"))
			in, err := describer.Describe(t.Context(), "a")
			switch {
			case tt.want == "" && (err != nil || in.ID != "a" || in.State != driver.Stopped):
				t.Errorf("got %+v, %v", in, err)
			case tt.want != "" && (err == nil || drover.KindOf(err) != tt.want || in.ID != ""):
				t.Errorf("got %+v, %v, want %s", in, err, tt.want)
			}
			if dated := strings.Contains(tt.said, "04:05:06Z"); dated != (in.Ended == drover.TimeOf(time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC))) {
				t.Errorf("it ended at %v", in.Ended)
			}
			asked, err := os.ReadFile(path + ".got")
			if err != nil || !strings.HasPrefix(string(asked), "describe ") || !strings.Contains(string(asked), `"version":1,`) || !strings.Contains(string(asked), `"args":{"id":"a"}`) {
				t.Errorf("the request was %s, %v", asked, err)
			}
		})
	}
}

// covers C10
func TestConfiguredTypes(t *testing.T) {
	c, err := open(t.Context(), "command: ["+script(t, hello)+"], types: [{name: small, vcpus: 2, memory: 1Gi, price: 0.5}], zones: [b, a]", "f", t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	all, err := c.Offerings(t.Context())
	if err != nil || len(all) != 2 || all[0].Zone != "a" || all[0].Price != drover.Dollar/2 {
		t.Errorf("got %+v, %v", all, err)
	}
}

// TestFaultyPrograms makes programs misbehave during a list, with either protocol.
// covers C9
func TestFaultyPrograms(t *testing.T) {
	quiet := `while read -r request; do :; done
`
	for _, tt := range []struct{ name, by, does, want string }{
		{"it exits without a reply", "call", `exit 3`, "exit status 3"},
		{"it fails after its reply", "call", `echo '{"result":{"instances":[]}}'; exit 3`, "replied, but then failed: exit status 3"},
		{"it fails within its reply", "call", `printf '{"result":{"inst'; exit 3`, "replied, but then failed: exit status 3"},
		{"its list has the wrong type", "call", `echo '{"result":{"instances":{}}}'`, "instances is of the wrong type (object)"},
		{"the error contains its last line", "call", `echo oh no >&2; exit 1`, "oh no"},
		{"its reply is not JSON", "call", `echo hello`, "reply is not valid"},
		{"its reply is not an object", "call", `echo '[]'`, "it is of the wrong type (array)"},
		{"a time is not one", "call", `echo '{"result":{"instances":[{"id":"a","created":"yesterday"}]}}'`, `"yesterday" is not a time`},
		{"it replies twice", "call", `echo '{"result":{"instances":[]}}'; echo '{"result":{"instances":[]}}'`, "there is extra data after the JSON value"},
		{"a bracket follows its reply", "call", `echo '{"result":{"instances":[]}}]'`, "there is extra data after the JSON value"},
		{"an id is not valid UTF-8", "call", `printf '{"result":{"instances":[{"id":"\377","type":"t","zone":"z","market":"spot","state":"running"}]}}'`, "not valid UTF-8"},
		{"it answers another request", "call", `echo '{"id":99,"result":{"instances":[]}}'`, "99"},
		{"it has neither a result nor an error", "call", `echo '{}'`, "neither"},
		{"its reply lacks the list", "call", `echo '{"result":{}}'`, "no instances"},
		{"one instance of its list is invalid", "call",
			`echo '{"result":{"instances":[{"id":"a","type":"t","zone":"z","market":"spot","state":"running"},{"id":"b","state":"dreaming"}]}}'`, "dreaming"},
		{"an address looks like an option", "call", `echo '{"result":{"instances":[{"id":"a","type":"t","zone":"z","market":"spot","state":"running","public":"-oProxyCommand=x"}]}}'`, "not an address"},
		{"its reply never ends", "call", `yes '{"result":'`, "more than"},
		{"it hangs with its children", "call", `sleep 1000 & trap '' TERM; sleep 1000; sleep 1000`, "did not answer within"},
		{"it exits during a call", "stream", `exit 3`, "exit status 3"},
		{"its reply names no request", "stream", `echo '{"result":{}}'; ` + quiet, "not a reply to a request"},
		{"its line never ends", "stream", `yes | tr -d '\n'`, "more than"},
		{"it does not answer", "stream", quiet, "did not answer within"},
		{"it does not read", "stream", `sleep 1000`, "did not answer within"},
	} {
		t.Run(tt.by+": "+tt.name, func(t *testing.T) {
			t.Parallel()
			timeout, text := "1m", hello+tt.does+"\n"
			if strings.Contains(tt.want, "within") {
				timeout = "1s"
			}
			if tt.by == "stream" {
				text = `echo '{"id":1,"result":{}}'; read -r request
` + tt.does + "\n"
			}
			c, err := open(t.Context(), "command: ["+script(t, text)+"], timeout: "+timeout+", protocol: "+tt.by, "f", t.TempDir(), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			all, err := c.List(t.Context(), nil)
			if err == nil || !strings.Contains(err.Error(), tt.want) || drover.KindOf(err) != drover.KindTransient || all != nil {
				t.Errorf("got %v, %v (%s), want %q in it", all, err, drover.KindOf(err), tt.want)
			}
		})
	}
	t.Run("a hint says what belongs on standard output, unless the reply is JSON", func(t *testing.T) {
		for says, want := range map[string]bool{"debugging": true, `{"result":{}} {}`: true, "[]": false, `{"error":"full"}`: false} {
			_, err := open(t.Context(), "command: ["+script(t, "echo '"+says+"'")+"]", "f", t.TempDir(), nil)
			if hint := drover.AsError(err, "").Hint; strings.Contains(hint, "standard output") != want {
				t.Errorf("%s: %v, hint %q", says, err, hint)
			}
		}
	})
}

// covers C5
func TestErrors(t *testing.T) {
	for _, tt := range []struct {
		said string
		want drover.Error
	}{
		{`{"kind":"quota","scope":"quota_group","market":"spot","message":"no more"}`,
			drover.Error{Kind: drover.KindQuota, Scope: drover.ScopeQuotaGroup, Market: drover.Spot, Message: "create: no more"}},
		{`{"kind":"capacity","scope":"moon","market":"flea"}`,
			drover.Error{Kind: drover.KindCapacity, Scope: drover.ScopeAll, Message: "create: the driver program gave no reason for this capacity error"}},
		{`{"kind":"boredom","scope":"zone","message":"a\u001b[31mb"}`, drover.Error{Kind: drover.KindTransient, Message: "create: a [31mb"}},
		{`{"kind":"internal","message":"x"}`, drover.Error{Kind: drover.KindTransient, Message: "create: x"}},
	} {
		c, err := open(t.Context(), "command: ["+script(t, hello+`echo '{"error":`+tt.said+`}'`)+"]", "f", t.TempDir(), nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = c.Create(t.Context(), driver.CreateRequest{Name: "x", Candidates: []driver.Candidate{{ProviderType: "t"}}})
		if got := drover.AsError(err, ""); *got != tt.want {
			t.Errorf("%s: got %+v", tt.said, *got)
		}
	}
	t.Run("a rate limit has a retry time, at most an hour ahead", func(t *testing.T) {
		for said, want := range map[string]time.Duration{"30": 30 * time.Second, "1e300": time.Hour, "-1": 10 * time.Second} {
			c, err := open(t.Context(), "command: ["+script(t, hello+`echo '{"error":{"kind":"rate_limit","retry_after_seconds":`+said+`}}'`)+"]", "f", t.TempDir(), nil)
			if err != nil {
				t.Fatal(err)
			}
			before := time.Now()
			err = c.Destroy(t.Context(), "x")
			at := drover.AsError(err, "").RetryAt.Std()
			if at.Before(before.Add(want)) || at.After(time.Now().Add(want)) {
				t.Errorf("%s: until %v", said, at)
			}
		}
	})
	t.Run("an accepted instance that could not be made is listed with its error", func(t *testing.T) {
		c, err := open(t.Context(), "command: ["+script(t, hello+`echo '{"result":{"instances":[{"id":"a","type":"t","zone":"z","market":"spot","state":"stopped","failed":{"kind":"capacity","scope":"zone","message":"full"}}]}}'`)+"]", "f", t.TempDir(), nil)
		if err != nil {
			t.Fatal(err)
		}
		all, err := c.List(t.Context(), nil)
		if want := (drover.Error{Kind: drover.KindCapacity, Scope: drover.ScopeZone, Message: "full"}); err != nil || len(all) != 1 || all[0].Failed == nil || *all[0].Failed != want {
			t.Errorf("%+v, %v", all, err)
		}
	})
	t.Run("destroying a missing instance succeeds", func(t *testing.T) {
		c, err := open(t.Context(), "command: ["+script(t, hello+`echo '{"error":{"kind":"not_found","message":"x"}}'`)+"]", "f", t.TempDir(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Destroy(t.Context(), "x"); err != nil {
			t.Error(err)
		}
	})
}

// covers C9
func TestCloseEndsEveryProcess(t *testing.T) {
	for by, text := range map[string]string{
		"call":   hello + `sleep 1000 & echo $! >"$0.pid"; echo '{"result":{"instances":[]}}'` + "\n",
		"stream": `sleep 1000 & echo $! >"$0.pid"; echo '{"id":1,"result":{}}'; read -r request; echo '{"id":2,"result":{"instances":[]}}'; trap '' TERM; read -r request; sleep 1000` + "\n",
	} {
		t.Run(by, func(t *testing.T) {
			t.Parallel()
			path := script(t, text)
			c, err := open(t.Context(), "command: ["+path+"], protocol: "+by, "f", t.TempDir(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if all, err := c.List(t.Context(), nil); err != nil || len(all) > 0 {
				t.Errorf("got %v, %v", all, err)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			pid, err := os.ReadFile(path + ".pid")
			if err != nil {
				t.Fatal(err)
			}
			until(t, "the program's child is gone", func() bool {
				stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(pid)) + "/stat")
				return errors.Is(err, os.ErrNotExist) || strings.Contains(string(stat), ") Z ")
			})
			if _, err := c.List(t.Context(), nil); err == nil {
				t.Error("a closed cloud still lists")
			}
		})
	}
}

func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timed out waiting until %s", what)
		}
	}
}

func TestProgramIsRestartedAfterItEnds(t *testing.T) {
	c, err := open(t.Context(), "command: ["+script(t, `id=${request#*\"id\":}; id=${id%%,*}
echo "{\"id\":$id,\"result\":{\"instances\":[]}}"; exit`)+"], protocol: stream", "f", t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	until(t, "it lists again", func() bool { _, err := c.List(t.Context(), nil); return err == nil })
}

func TestMissingProgram(t *testing.T) {
	c, err := open(t.Context(), "command: ["+script(t, `rm "$0"; `+hello)+"]", "f", t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.List(t.Context(), nil); drover.KindOf(err) != drover.KindTransient || !strings.Contains(err.Error(), "list: start the driver program: ") {
		t.Error(err)
	}
}

func TestHungProgramIsRestarted(t *testing.T) {
	path := script(t, `id=${request#*\"id\":}; id=${id%%,*}
echo "{\"id\":$id,\"result\":{\"instances\":[]}}"
[ -e "$0.hung" ] && sleep 1000
trap '' TERM; echo $$ >"$0.hung"; while :; do sleep 1; done`)
	c, err := open(t.Context(), "command: ["+path+"], protocol: stream, timeout: 5s", "f", t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.List(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "did not answer within 5s") {
		t.Error(err)
	}
	until(t, "it lists again", func() bool { _, err := c.List(t.Context(), nil); return err == nil })
}

func TestStandardErrorIsLogged(t *testing.T) {
	var log bytes.Buffer
	text := hello + `printf 'one\ntwo\033[2J\n' >&2; yes | head -n 1000 >&2; head -c 5000 /dev/zero | tr '\0' x >&2; echo '{"result":{"instances":[]}}'`
	c, err := open(t.Context(), "command: ["+script(t, text)+"]", "f", t.TempDir(), slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.List(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	lines := strings.Count(log.String(), "\n")
	if lines != 100 || !strings.Contains(log.String(), "said=one\n") || strings.Contains(log.String(), "\x1b") {
		t.Errorf("%d lines: %.300s", lines, log.String())
	}
}

func TestCreateRequest(t *testing.T) {
	path := script(t, hello+`printf '%s\n' "$request" >"$0.got"; echo '{"error":{"kind":"invalid","message":"enough"}}'`)
	c, err := open(t.Context(), "command: ["+path+"], options: {region: r1}", "f", t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	r := driver.CreateRequest{
		Name: "n", Disk: 7, Tags: map[string]string{"a": "b"}, PublicKey: "ssh-ed25519 A", HostKey: drover.NewSecret("KEY"), Template: "T",
		Init: drover.NewSecret("#!/bin/sh\nA"), UserInit: drover.NewSecret("#!/bin/sh\nB"),
		Candidates: []driver.Candidate{{ProviderType: "t", Zone: "z", Market: drover.Spot, Arch: "arm64", Image: "i"}},
	}
	if _, _, err := c.Create(t.Context(), r); drover.KindOf(err) != drover.KindInvalid {
		t.Errorf("got %v", err)
	}
	text, err := os.ReadFile(path + ".got")
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Call    string
		Options map[string]string
		Args    json.RawMessage
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	want := `{"name":"n","candidates":[{"type":"t","zone":"z","market":"spot","arch":"arm64","image":"i"}],"disk_bytes":7,"tags":{"a":"b"},"template":"T",` +
		`"scripts":["#!/bin/sh\nA","#!/bin/sh\nB"],"host_key":"KEY","public_key":"ssh-ed25519 A"}`
	if got.Call != "create" || got.Options["region"] != "r1" || string(got.Args) != want {
		t.Errorf("got %s %v\n%s\nwant\n%s", got.Call, got.Options, got.Args, want)
	}
}

func TestDocumentedListLag(t *testing.T) {
	drivertest.ShowsLag(t, "a program", driver.DefaultListLag)
}
