package control

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"drover"
	"drover/driver"
	"drover/internal/engine"
)

const (
	checkTick  = 200 * time.Millisecond // the maximum delay of a check
	mostChecks = 512                    // at a time; further checks wait
	maxHeader  = 16 << 10               // of an answer to an HTTP check; its body is not read
)

// checker checks instances. Only its own goroutine uses it; results arrive over done.
type checker struct {
	c    *Controller
	of   map[int64]*checkedInstance
	pass map[string]time.Time // when an instance of a cloud last passed
	busy int
	done chan checkResult
}

// checkedInstance is the state of an instance's health checks.
type checkedInstance struct {
	engine.Check
	due   time.Time
	under bool      // a check is in progress
	fails int       // in a row
	since time.Time // the first of those
	heard time.Time // when another instance of its cloud was seen to pass since
}

type checkResult struct {
	instance int64
	began    time.Time
	err      error
}

// runChecks checks the health of instances until ctx ends. It reports results that are news to the engine.
func (c *Controller) runChecks(ctx context.Context) {
	k := &checker{c: c, of: map[int64]*checkedInstance{}, pass: map[string]time.Time{}, done: make(chan checkResult)}
	ticks := time.NewTicker(checkTick)
	defer ticks.Stop()
	list, changed := c.toCheck()
	k.follow(list, time.Now())
	for {
		tick := ticks.C
		if len(k.of) == 0 {
			tick = nil
		}
		select {
		case <-ctx.Done():
			for ; k.busy > 0; k.busy-- {
				<-k.done
			}
			return
		case <-changed:
			list, changed = c.toCheck()
			k.follow(list, time.Now())
		case r := <-k.done:
			k.busy--
			k.take(ctx, r, time.Now())
		case <-tick:
			k.begin(ctx, time.Now())
		}
	}
}

// follow updates the set of instances to check. A new one is checked immediately; others keep their state.
func (k *checker) follow(list []engine.Check, now time.Time) {
	of := make(map[int64]*checkedInstance, len(list))
	for _, one := range list {
		in := k.of[one.Instance]
		if in == nil {
			in = &checkedInstance{due: now}
		}
		in.Check = one
		of[one.Instance] = in
	}
	k.of = of
}

// begin starts the checks that are due.
func (k *checker) begin(ctx context.Context, now time.Time) {
	setup := k.c.current()
	for id, in := range k.of {
		check := setup.Pools[in.Pool].Check
		if check == nil || in.under || now.Before(in.due) || k.busy >= mostChecks {
			continue
		}
		in.under, in.due = true, now.Add(check.Interval)
		k.busy++
		host := k.c.checkHost(setup, in.Check)
		k.c.work.Go(func() { k.done <- checkResult{id, now, check.try(ctx, host)} })
	}
}

// take handles a check's result, and reports it to the engine if that is news.
func (k *checker) take(ctx context.Context, r checkResult, now time.Time) {
	in := k.of[r.instance]
	if in == nil || ctx.Err() != nil {
		return
	}
	in.under = false
	check := k.c.current().Pools[in.Pool].Check
	switch {
	case check == nil:
	case r.err == nil:
		in.fails, in.heard = 0, time.Time{}
		k.pass[in.Cloud] = now
		if !in.Passed {
			k.c.post(ctx, engine.HealthChecked{Instance: in.Instance})
		}
	default:
		if in.fails++; in.fails == 1 {
			in.since = r.began
		}
		others := !in.heard.IsZero() && !r.began.Before(in.heard)
		if in.heard.IsZero() && k.pass[in.Cloud].After(in.since) {
			in.heard = now
		}
		if in.fails >= check.Failures && (!in.Fails || others && !in.Vouched) {
			k.c.post(ctx, engine.HealthChecked{Instance: in.Instance, Text: drover.Sanitize(r.err.Error()), Others: others})
		}
	}
}

// checkHost returns where an instance is reached, without a port; empty while unknown.
func (c *Controller) checkHost(s *setup, in engine.Check) string {
	cl := s.clouds[in.Cloud]
	if cl == nil {
		return ""
	}
	seen, _ := cl.find(in.ProviderID)
	host := pick(cl.SSH, seen.Addresses)
	if host == "" {
		host = pick(cl.SSH, driver.Addresses(in.Addresses))
	}
	if bare, _, err := net.SplitHostPort(host); err == nil {
		return bare
	}
	return host
}

// try makes one check.
func (h *HealthCheck) try(ctx context.Context, host string) error {
	if host == "" {
		return drover.Errorf(drover.KindNotFound, "its address is not known yet")
	}
	ctx, cancel := context.WithTimeout(ctx, h.Timeout)
	defer cancel()
	address := net.JoinHostPort(host, strconv.Itoa(h.Port))
	if h.Path == "" {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err == nil {
			conn.Close()
		}
		return err
	}
	return get(ctx, "http://"+address+h.Path)
}

// get requests a page of an instance: directly, without following redirects or reading it.
func get(ctx context.Context, url string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	r.Header.Set("User-Agent", "drover-health")
	transport := &http.Transport{DisableKeepAlives: true, MaxResponseHeaderBytes: maxHeader}
	defer transport.CloseIdleConnections()
	answer, err := transport.RoundTrip(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode < 200 || answer.StatusCode > 399 {
		return fmt.Errorf("GET %s: %.100s", url, answer.Status)
	}
	return nil
}
