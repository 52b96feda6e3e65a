package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"drover"
	"drover/internal/config"
	"drover/internal/control"
	"drover/internal/engine/pool"
	"drover/internal/logkey"
)

// priceTime is how long clouds may take to report their prices when a configuration is checked. Most have them at hand.
const priceTime = 20 * time.Second

// shortestMonth is its length in hours: pools that exceed a monthly budget in it exceed the budget in any month.
const shortestMonth = 28 * 24

// checkBudget refuses pools that alone would exceed a hard budget of the fleet, at today's cheapest prices. It refuses
// nothing if prices are unknown: the engine keeps within the budget in any case.
func checkBudget(ctx context.Context, c *config.Config, clouds []control.Cloud, log *slog.Logger) error {
	at := slices.IndexFunc(c.Budgets, func(b config.Budget) bool { return b.User == "" && b.Label == "" && b.Amounts != (config.Amounts{}) })
	if at < 0 || len(c.Pools) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, priceTime)
	defer cancel()
	offerings, _, err := Offerings(ctx, clouds)
	if err != nil {
		log.Warn("cannot check whether the pools fit the budget", logkey.Error, err)
		return nil
	}
	var hourly, always drover.Money // at the most instances, and at the fewest
	for _, p := range c.Pools {
		price, ok := cheapest(p, offerings)
		most, least := p.Numbers()
		if ok {
			hourly, always = hourly+price*drover.Money(most), always+price*drover.Money(least)
		}
	}
	hard := c.Budgets[at].Amounts
	for _, w := range []struct {
		key        string
		hard, cost drover.Money
	}{{"hourly", hard.Hourly, hourly}, {"daily", hard.Daily, 24 * always}, {"monthly", hard.Monthly, shortestMonth * always}} {
		if w.hard > 0 && w.cost > w.hard {
			return c.Fault("budget."+w.key, fmt.Sprintf("the pools alone cost at least %v, more than the %s budget of %v", w.cost, w.key, w.hard),
				"raise the budget, or lower the pools' size or floor")
		}
	}
	return nil
}

// cheapest returns the lowest hourly price of an instance of a pool; not ok if there is no offering that the pool may
// use.
func cheapest(p config.Pool, offerings []drover.Offering) (price drover.Money, ok bool) {
	spec := poolSpec(p)
	for _, o := range offerings {
		if spec.Allows(pool.Place{Cloud: o.Cloud, Zone: o.Zone}) && spec.Uses(o) && (!ok || o.Price < price) {
			price, ok = o.Price, true
		}
	}
	return price, ok
}
