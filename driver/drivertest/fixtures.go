package drivertest

import (
	"log/slog"
	"reflect"
	"testing"

	"drover"
	"drover/driver"
	"drover/internal/config"
)

// Options are those of a cloud of this name, whose own keys are as a configuration has them on one line: "zones: [a], markets: [spot]".
func Options(t testing.TB, cloud, kind, fleet, keys, folder string) driver.Options {
	t.Helper()
	c, err := config.Parse("drover.yaml", []byte("version: 1\nclouds: {"+cloud+": {driver: "+kind+", "+keys+"}}\n"), folder)
	if err != nil {
		t.Fatal(err)
	}
	return driver.Options{Name: cloud, Fleet: fleet, Folder: folder, Log: slog.New(slog.DiscardHandler), Decode: c.Clouds[0].Decode}
}

// ofFleet is the tag of the fleet that the fixtures below are of.
var ofFleet = map[string]string{driver.TagFleet: "fleet"}

// Request asks for an instance of these candidates, all with one image.
func Request(name, image string, candidates ...driver.Candidate) driver.CreateRequest {
	for i := range candidates {
		candidates[i].Image = image
	}
	return driver.CreateRequest{
		Name: name, Candidates: candidates, Tags: map[string]string{driver.TagFleet: ofFleet[driver.TagFleet], driver.TagName: name},
		HostKey: drover.NewSecret("-----BEGIN KEY-----\nhost\n-----END KEY-----\n"), PublicKey: "ssh-ed25519 AAAA fleet\n", Init: drover.NewSecret("#!/bin/sh\ntrue\n"),
	}
}

// Create creates an instance.
func Create(t testing.TB, c driver.Cloud, r driver.CreateRequest) (driver.Instance, driver.Candidate) {
	t.Helper()
	in, taken, err := c.Create(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return in, taken
}

// Refused is the error that a create ends with.
func Refused(t testing.TB, c driver.Cloud, r driver.CreateRequest) *drover.Error {
	t.Helper()
	_, _, err := c.Create(t.Context(), r)
	if err == nil {
		t.Fatal("it was created")
	}
	return drover.AsError(err, drover.KindInternal)
}

// Listed are the instances in the list by their ids, of which each is described in the same way.
func Listed(t testing.TB, c driver.Cloud) map[string]driver.Instance {
	t.Helper()
	found, err := c.List(t.Context(), ofFleet)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]driver.Instance{}
	for _, in := range found {
		if described, err := c.(driver.Describer).Describe(t.Context(), in.ID); err != nil || !reflect.DeepEqual(in, described) {
			t.Errorf("listed %+v, described %+v, %v", in, described, err)
		}
		all[in.ID] = in
	}
	return all
}
