package daemon

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"drover"
	"drover/driver"
	"drover/internal/config"
	"drover/internal/control"
)

// priced is a cloud with one type in one zone, in both markets, or a cloud that does not answer.
type priced struct {
	driver.Cloud
	err error
}

func (priced) Capabilities() driver.Capabilities { return driver.Capabilities{} }

func (p priced) Offerings(context.Context) (all []drover.Offering, err error) {
	for market, price := range map[drover.Market]drover.Money{drover.OnDemand: drover.Dollar, drover.Spot: drover.Dollar / 4} {
		kind := drover.InstanceType{Name: "small", ProviderType: "small", Resources: drover.Resources{CPU: 1000, Memory: drover.GiB}}
		all = append(all, drover.Offering{Cloud: "here", Zone: "a", Type: kind, Market: market, Price: price})
	}
	return all, p.err
}

// covers D24 P6
func TestPoolsThatAloneExceedAHardBudgetAreRefused(t *testing.T) {
	for _, c := range []struct {
		name, budget, pools, want string
		err                       error
	}{
		{"within the budget", "{hourly: 3}", "{web: {size: 3}}", "", nil},
		{"an hour exceeds it", "{hourly: 3}", "{web: {size: 2}, back: {floor: 2}}", "cost at least $4.0000, more than the hourly budget of $3.0000", nil},
		{"the cheaper market counts", "{hourly: 1}", "{web: {size: 4, market: spot}}", "", nil},
		{"a day exceeds it", "{daily: 47}", "{web: {size: 2}}", "more than the daily budget", nil},
		{"even the shortest month exceeds it", "{monthly: 671}", "{web: {size: 1}}", "more than the monthly budget", nil},
		{"spare instances do not count", "{hourly: 1}", "{web: {spare: 2}}", "", nil},
		{"a schedule's maximum counts in an hour", "{hourly: 3}", "{web: {size: 1, schedule: [{cron: 0 8 * * *, to: 4}, {cron: 0 9 * * *, to: 1}]}}", "hourly budget", nil},
		{"but not in a day", "{daily: 50}", "{web: {size: 1, schedule: [{cron: 0 8 * * *, to: 4}, {cron: 0 9 * * *, to: 1}]}}", "", nil},
		{"a soft budget stops nothing", "{soft: {hourly: 1}}", "{web: {size: 3}}", "", nil},
		{"a user's budget does not limit pools", "[{user: ada, hourly: 1}]", "{web: {size: 3}}", "", nil},
		{"unknown prices refuse nothing", "{hourly: 1}", "{web: {size: 3}}", "", drover.Errorf(drover.KindInvalid, "no prices")},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := "version: 1\nclouds: {here: {driver: x}}\nbudget: " + c.budget + "\npools: " + c.pools + "\n"
			parsed, err := config.Parse("drover.yaml", []byte(text), "")
			if err != nil {
				t.Fatal(err)
			}
			err = checkBudget(t.Context(), parsed, []control.Cloud{{Name: "here", Driver: priced{err: c.err}}}, slog.New(slog.DiscardHandler))
			if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}
