package drivertest

import (
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"drover"
	"drover/driver"
	"drover/driver/kit"
	"drover/internal/config"
)

// Must ends a test that cannot continue after an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Options returns the options of a cloud with this name. Its own keys are written as in a configuration, on one line:
// "zones: [a], markets: [spot]".
func Options(t testing.TB, cloud, kind, fleet, keys, folder string) driver.Options {
	t.Helper()
	c, err := config.Parse("drover.yaml", []byte("version: 1\nclouds: {"+cloud+": {driver: "+kind+", "+keys+"}}\n"), folder)
	Must(t, err)
	return driver.Options{Name: cloud, Fleet: fleet, Folder: folder, Log: slog.New(slog.DiscardHandler), Decode: c.Clouds[0].Decode}
}

// ofFleet is the tag of the fixtures' fleet.
var ofFleet = map[string]string{driver.TagFleet: "fleet"}

// LoginKey is the public key that may log in with Request.
const LoginKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHQ9kqT8Yl0bYp3m0Kp7pZ1x2v3u4t5s6r7q8p9o0n1m fleet"

// Request returns a request for an instance of these candidates, all with one image.
func Request(name, image string, candidates ...driver.Candidate) driver.CreateRequest {
	for i := range candidates {
		candidates[i].Image = image
	}
	return driver.CreateRequest{
		Name: name, Candidates: candidates, Tags: map[string]string{driver.TagFleet: ofFleet[driver.TagFleet], driver.TagName: name},
		HostKey: drover.NewSecret("-----BEGIN KEY-----\nhost\n-----END KEY-----\n"), PublicKey: LoginKey + "\n", Init: drover.NewSecret("#!/bin/sh\ntrue\n"),
	}
}

// Create creates an instance.
func Create(t testing.TB, c driver.Cloud, r driver.CreateRequest) (driver.Instance, driver.Candidate) {
	t.Helper()
	in, taken, err := c.Create(t.Context(), r)
	Must(t, err)
	return in, taken
}

// Refused returns the error of a create that must fail.
func Refused(t testing.TB, c driver.Cloud, r driver.CreateRequest) *drover.Error {
	t.Helper()
	_, _, err := c.Create(t.Context(), r)
	if err == nil {
		t.Fatal("the create request succeeded, want an error")
	}
	return drover.AsError(err, drover.KindInternal)
}

// Listed returns the listed instances by id. Describing each must give the same result.
func Listed(t testing.TB, c driver.Cloud) map[string]driver.Instance {
	t.Helper()
	found, err := c.List(t.Context(), ofFleet)
	Must(t, err)
	all := map[string]driver.Instance{}
	for _, in := range found {
		if described, err := c.(driver.Describer).Describe(t.Context(), in.ID); err != nil || !reflect.DeepEqual(in, described) {
			t.Errorf("listed %+v, described %+v, %v", in, described, err)
		}
		all[in.ID] = in
	}
	return all
}

// Lack is a fake's refusals, by "type zone market", where an empty part means any.
type Lack[T any] map[string]T

// Of finds the refusal, if there is one.
func (l Lack[T]) Of(kind, zone, market string) (refusal T, lacking bool) {
	for _, key := range slices.Sorted(maps.Keys(l)) {
		of := strings.Split(key, " ")
		if len(of) == 3 && (of[0] == "" || of[0] == kind) && (of[1] == "" || of[1] == zone) && (of[2] == "" || of[2] == market) {
			return l[key], true
		}
	}
	return refusal, false
}

// Buckets are the token buckets with which a fake limits calls, by name. They are implemented independently of those
// that drivers use.
type Buckets map[string]*bucket

type bucket struct {
	left float64
	at   time.Time
}

// Spend takes tokens from a bucket with this rate, if it has enough.
func (b Buckets) Spend(name string, r kit.Rate, tokens int) bool {
	now, full := time.Now(), float64(r.Burst)
	if b[name] == nil {
		b[name] = &bucket{full, now}
	}
	one := b[name]
	one.left, one.at = min(full, one.left+now.Sub(one.at).Seconds()*float64(r.PerSecond)), now
	if one.left < float64(tokens)-1e-6 {
		return false
	}
	one.left -= float64(tokens)
	return true
}
