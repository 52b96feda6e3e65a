package external_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"drover"
	"drover/driver"
	"drover/driver/local"
)

// This test binary is the driver program of these tests, and also the instances that the program makes with the local
// driver.
func TestMain(m *testing.M) {
	switch arg := os.Args; {
	case len(arg) > 1 && arg[1] == local.Command:
		os.Exit(local.InstanceMain(arg[2:]))
	case len(arg) > 2 && arg[1] == "driver-program":
		program(arg[2])
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// asked is a request as a program sees it. Its fields follow the documentation, not the driver's types.
type asked struct {
	Version int               `json:"version"`
	ID      int64             `json:"id"`
	Call    string            `json:"call"`
	Fleet   string            `json:"fleet"`
	Folder  string            `json:"folder"`
	Options map[string]string `json:"options"`
	Args    struct {
		ID         string            `json:"id"`
		Name       string            `json:"name"`
		Tags       map[string]string `json:"tags"`
		HostKey    string            `json:"host_key"`
		PublicKey  string            `json:"public_key"`
		Scripts    []string          `json:"scripts"`
		Candidates []struct {
			Type, Zone, Image string
			Market            drover.Market
		} `json:"candidates"`
	} `json:"args"`
}

type object = map[string]any

// program answers one request, or every request concurrently.
func program(mode string) {
	var answers sync.WaitGroup
	var mu sync.Mutex
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r asked
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil || r.Version != 1 {
			fmt.Fprintln(os.Stderr, "not a valid request:", err)
			os.Exit(1)
		}
		answers.Go(func() {
			text, err := json.Marshal(answer(r))
			if err != nil {
				panic(err)
			}
			mu.Lock()
			defer mu.Unlock()
			fmt.Printf("%s\n", text)
		})
		if mode != "stream" {
			break
		}
	}
	answers.Wait()
}

func answer(r asked) object {
	result, err := perform(r)
	if err != nil {
		e := drover.AsError(err, drover.KindTransient)
		return object{"id": r.ID, "error": object{"kind": e.Kind, "scope": e.Scope, "market": e.Market, "message": e.Message}}
	}
	if result == nil {
		result = object{}
	}
	return object{"id": r.ID, "result": result}
}

func perform(r asked) (object, error) {
	if r.Call == "open" {
		return object{"host_keys": "planted", "power_off": "ends", "notices": "file", "list_lag": "0s", "calls": []string{"offerings", "verify_host_key", "describe"}}, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	c, err := local.Open(ctx, driver.Options{Name: "inner", Fleet: r.Fleet, Folder: r.Options["folder"]})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	a := r.Args
	switch r.Call {
	case "offerings":
		all, err := c.Offerings(ctx)
		var said []object
		for _, o := range all {
			t := o.Type.Resources
			said = append(said, object{"type": o.Type.Name, "zone": o.Zone, "market": o.Market, "vcpus": float64(t.CPU) / 1000,
				"memory_bytes": t.Memory, "disk_bytes": t.Disk, "arch": t.Arch, "price_usd_per_hour": o.Price.USD()})
		}
		return object{"offerings": said}, err
	case "create":
		in, _, err := c.Create(ctx, request(r))
		return object{"instance": told(in)}, err
	case "list":
		all, err := c.List(ctx, a.Tags)
		said := []object{}
		for _, in := range all {
			said = append(said, told(in))
		}
		return object{"instances": said}, err
	case "describe":
		describer, _ := driver.As[driver.Describer](c)
		in, err := describer.Describe(ctx, a.ID)
		return object{"instance": told(in)}, err
	case "destroy":
		return nil, c.Destroy(ctx, a.ID)
	case "set_tags":
		return nil, c.SetTags(ctx, a.ID, a.Tags)
	case "verify_host_key":
		key, err := base64.StdEncoding.DecodeString(a.HostKey)
		if err != nil {
			return nil, err
		}
		return nil, c.VerifyHostKey(ctx, driver.Instance{ID: a.ID}, key, nil)
	}
	return nil, drover.Errorf(drover.KindUnsupported, "there is no call %s", r.Call)
}

func request(r asked) driver.CreateRequest {
	a := r.Args
	c := driver.CreateRequest{Name: a.Name, Tags: a.Tags, HostKey: drover.NewSecret(a.HostKey), PublicKey: a.PublicKey,
		Init: drover.NewSecret(strings.Join(a.Scripts, "\n"))}
	for _, o := range a.Candidates {
		c.Candidates = append(c.Candidates, driver.Candidate{ProviderType: o.Type, Zone: o.Zone, Market: o.Market})
	}
	return c
}

func told(in driver.Instance) object {
	return object{"id": in.ID, "tags": in.Tags, "type": in.ProviderType, "zone": in.Zone, "market": in.Market, "state": in.State,
		"public": in.Addresses.Public, "user": in.Addresses.User, "created": in.Created.Std().UTC().Format(time.RFC3339)}
}

// script returns the path, as YAML, of a driver program in shell. The program gets the name of the call as an argument
// and the request in the variable request.
func script(t *testing.T, text string) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "driver") // t.TempDir contains the test's name, which may not be a plain YAML word
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	path := filepath.Join(folder, "driver.sh")
	// A process forked meanwhile would keep the file open for writing until its exec, and running the script would fail
	// with ETXTBSY.
	syscall.ForkLock.RLock()
	err = os.WriteFile(path, []byte("#!/bin/sh\nread -r request\n"+text), 0o700)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	return path
}
