package drivertest

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"drover"
	"drover/driver"
	"drover/driver/kit"
)

// Offers returns a cloud's offerings in short form: type, zone, market, price, quota group, memory, architecture and
// GPUs.
func Offers(t testing.TB, c driver.Cloud) []string {
	t.Helper()
	found, err := c.Offerings(t.Context())
	Must(t, err)
	return kit.Each(found, func(o drover.Offering) string {
		r := o.Type.Resources
		return fmt.Sprintf("%s %s %s $%v %s %s %s %d", o.Type.Name, o.Zone, o.Market, o.Price.USD(), o.QuotaGroup, r.Memory, r.Arch, r.GPUs)
	})
}

// RefusedAs expects that a create fails with an error of this kind, scope and market.
func RefusedAs(t testing.TB, c driver.Cloud, r driver.CreateRequest, want drover.Error) {
	t.Helper()
	if got := Refused(t, c, r); got.Kind != want.Kind || got.Scope != want.Scope || got.Market != want.Market {
		t.Errorf("got %s %s %s, want %s %s %s: %v", got.Kind, got.Scope, got.Market, want.Kind, want.Scope, want.Market, got)
	}
}

// Impossible expects that the cloud refuses these requests as invalid, and those that every driver refuses: without an
// image, with a template that is not JSON, and with more user data than the cloud accepts.
func Impossible(t testing.TB, c driver.Cloud, request func(string, ...driver.Candidate) driver.CreateRequest, maxUserData int, more ...driver.CreateRequest) {
	t.Helper()
	noImage, badTemplate, tooLarge := request("one"), request("one"), request("one")
	noImage.Candidates[0].Image, badTemplate.Template = "", "{"
	tooLarge.UserInit = drover.NewSecret("#!/bin/sh\n" + strings.Repeat("#", maxUserData))
	for i, r := range append(more, noImage, badTemplate, tooLarge) {
		if got := Refused(t, c, r); got.Kind != drover.KindInvalid || !strings.HasPrefix(got.Message, "create instance ") {
			t.Errorf("request %d: %s: %v", i, got.Kind, got)
		}
	}
}

// FreesQuota expects that a cloud whose quota allows one instance allows another once the first is destroyed.
func FreesQuota(t testing.TB, c driver.Cloud, request func(string, ...driver.Candidate) driver.CreateRequest, of driver.Candidate) {
	t.Helper()
	in, _ := Create(t, c, request("one", of))
	RefusedAs(t, c, request("two", of), drover.Error{Kind: drover.KindQuota, Scope: drover.ScopeQuotaGroup, Market: of.Market})
	Must(t, c.Destroy(t.Context(), in.ID))
	Create(t, c, request("three", of))
}

// KeepsTags sets only the fleet's tag on an instance, and expects that it then has these tags.
func KeepsTags(t testing.TB, c driver.Cloud, id string, want map[string]string) {
	t.Helper()
	Must(t, c.SetTags(t.Context(), id, ofFleet))
	if got := Listed(t, c)[id].Tags; !reflect.DeepEqual(got, want) {
		t.Errorf("the instance has the tags %v, want %v", got, want)
	}
}

// ListFails expects that a list returns nothing but an error of this kind.
func ListFails(t testing.TB, c driver.Cloud, want drover.ErrorKind) {
	t.Helper()
	if all, err := c.List(t.Context(), nil); all != nil || drover.KindOf(err) != want {
		t.Errorf("listed %v, %v, want an error of kind %s", all, err, want)
	}
}

// DescribeFails expects that describing each id returns nothing but an error of this kind.
func DescribeFails(t testing.TB, c driver.Describer, want drover.ErrorKind, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if in, err := c.Describe(t.Context(), id); drover.KindOf(err) != want || in.ID != "" {
			t.Errorf("%s: described %+v, %v, want an error of kind %s", id, in, err, want)
		}
	}
}

// Reaped returns the kinds and ids of the fleet's leftovers that are removed after some time.
func Reaped(t testing.TB, c driver.Cloud, after time.Duration, life driver.FleetState) []string {
	t.Helper()
	reaped, err := driver.Reap(t.Context(), c, ofFleet[driver.TagFleet], drover.TimeOf(time.Now().Add(after)), life)
	Must(t, err)
	return kit.Each(reaped, func(l driver.Leftover) string { return l.Kind + " " + l.ID })
}

// ShowsPermissions expects that the page names the permissions that the driver's calls need. The pattern's first group
// matches one permission.
func ShowsPermissions(t testing.TB, page, pattern string, needed []string) {
	t.Helper()
	slices.Sort(needed)
	needed = slices.Compact(needed)
	if shown := ReadPage(t, page).Words(t, "Permissions", regexp.MustCompile(pattern)); !slices.Equal(shown, needed) {
		t.Errorf("the calls need %q, but the page shows %q", needed, shown)
	}
}
