package config

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"drover"
)

// Budgets limit what may be spent: one, or a list of them.
type Budgets []Budget

// Budget limits what may be spent in each hour, day and month of the UTC calendar, by the fleet or on the jobs of a
// user or with a label.
type Budget struct {
	Amounts
	Soft       Amounts  `yaml:"soft" doc:"amounts that only warn when they are exceeded"`
	User       string   `yaml:"user" doc:"count only this user's jobs"`
	Label      string   `yaml:"label" doc:"count only jobs with this label: NAME=VALUE"`
	OnExceeded Exceeded `yaml:"on_exceeded" doc:"when changed prices push spending over a budget: finish running jobs, or stop and requeue them"`
}

// Amounts are dollars in windows of time; 0 is no limit. A file leaves the key out instead.
type Amounts struct {
	Hourly  drover.Money `yaml:"hourly" doc:"USD per hour"`
	Daily   drover.Money `yaml:"daily" doc:"USD per day (UTC)"`
	Monthly drover.Money `yaml:"monthly" doc:"USD per month (UTC)"`
}

// Exceeded is what happens to running jobs when a budget is exceeded.
type Exceeded string

// The jobs finish, or they are stopped and wait.
const (
	ExceededFinish Exceeded = "finish"
	ExceededStop   Exceeded = "stop"
)

// maxBudgets limits the budgets, since each is checked whenever a decision commits money.
const maxBudgets = 100

// Default fills in the defaults of a budget.
func (b *Budget) Default() { *b = Budget{OnExceeded: ExceededFinish} }

func (b *Budgets) decode(d *decoder, n *node) {
	list := reflect.ValueOf((*[]Budget)(b)).Elem()
	if n.shape != mapping {
		d.value(n, list, field{})
		return
	}
	*b = make(Budgets, 1)
	d.value(n, list.Index(0), field{})
}

func (Budgets) schema() *jsonschema.Schema {
	one := schemaOf(reflect.TypeFor[Budget]())
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{one, {Type: "array", Items: schemaOf(reflect.TypeFor[Budget]()), MaxItems: new(maxBudgets)}}}
}

// scope names what a budget covers.
func (b Budget) scope() string {
	switch {
	case b.User != "":
		return "for user " + quote(b.User)
	case b.Label != "":
		return "for label " + quote(b.Label)
	}
	return "for the fleet"
}

// checkBudgets checks budgets against each other.
func (c *Config) checkBudgets(f *faults) {
	root := c.root.find("budget")
	if len(c.Budgets) > maxBudgets {
		f.addf(root, "at most %d budgets are allowed, not %d", maxBudgets, len(c.Budgets))
		return
	}
	var scopes []string
	for i, b := range c.Budgets {
		n := root
		if root.shape == list {
			n = root.find(strconv.Itoa(i))
		}
		if n.shape != mapping {
			continue // already reported
		}
		b.check(f, n)
		if slices.Contains(scopes, b.scope()) {
			f.add(n, "the budget "+b.scope()+" is configured twice", "write one entry that contains all its amounts")
		}
		scopes = append(scopes, b.scope())
	}
}

func (b Budget) check(f *faults, n *node) {
	name, value, ok := strings.Cut(b.Label, "=")
	switch {
	case b.User != "" && b.Label != "":
		f.add(n, "a budget is for a user or a label, not both", "write two entries; both apply")
	case b.Label != "" && (!ok || !labelKey.MatchString(name) || value == "" || len(value) > 256):
		f.add(n.find("label"), fmt.Sprintf("%s is not in the form NAME=VALUE", quote(b.Label)), "write label: project=x")
	}
	none := b.Amounts == (Amounts{}) && b.Soft == (Amounts{})
	for _, amounts := range []*node{n, n.get("soft")} {
		if amounts == nil {
			continue
		}
		for _, key := range []string{"hourly", "daily", "monthly"} {
			v := amounts.get(key)
			if v == nil || v.shape == absent {
				continue
			}
			none = false // if it is invalid, that is reported at its place
			if amount, err := drover.ParseMoney(v.text); err == nil && amount == 0 {
				f.add(v, key+" is 0, but must be more than 0", "leave it out for no limit")
			}
		}
	}
	if none {
		f.add(n, "the budget has no amount", "set at least one of hourly, daily and monthly")
	}
	for _, pair := range []struct {
		key        string
		hard, soft drover.Money
	}{{"hourly", b.Hourly, b.Soft.Hourly}, {"daily", b.Daily, b.Soft.Daily}, {"monthly", b.Monthly, b.Soft.Monthly}} {
		if pair.hard > 0 && pair.soft > pair.hard {
			f.addf(n.find("soft", pair.key), "the soft amount %v exceeds the hard amount %v, so it would never be reached", pair.soft, pair.hard)
		}
	}
}
