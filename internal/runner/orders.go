package runner

import (
	"context"
	"encoding/json"
	"os"
	"sync"

	"drover/internal/atomicfile"
	"drover/internal/wire"
)

const ordersFile = "orders"

// orders are the last that a controller gave. A daemon keeps to those that its predecessor was given until others come.
type orders struct {
	last    *wire.Orders  // nil: none ever came; guarded by daemon.mu
	changed chan struct{} // closed when others come; guarded by daemon.mu
}

// readOrders returns the folder's orders. Those that cannot be read are none: the next controller gives them anew.
func readOrders() orders {
	var o wire.Orders
	if readJSON(ordersFile, &o) != nil {
		return orders{changed: make(chan struct{})}
	}
	return orders{last: &o, changed: make(chan struct{})}
}

// readJSON reads a small file of the runner's own.
func readJSON(name string, into any) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// takeLocked takes orders. If the disk has no room for them they hold all the same, until this daemon ends.
func (d *daemon) takeLocked(now wire.Orders) {
	if last := d.orders.last; last != nil && *last == now {
		return
	}
	text, err := json.Marshal(now)
	if err == nil {
		err = atomicfile.WriteDurably(ordersFile, text)
	}
	if err != nil {
		d.log.Printf("storing the orders: %v", err)
	}
	d.orders.last = &now
	close(d.orders.changed)
	d.orders.changed = make(chan struct{})
}

// obey does what the orders ask for beside attempts until ctx ends. When they change it begins anew.
func (d *daemon) obey(ctx context.Context) {
	for ctx.Err() == nil {
		d.mu.Lock()
		now, changed := d.orders.last, d.orders.changed
		d.mu.Unlock()
		until, stop := context.WithCancel(ctx)
		var duties sync.WaitGroup
		if now != nil {
			duties.Go(func() { d.runWatchdog(until, now.Orphan) })
			duties.Go(func() { d.watchNotices(until, now.Notices) })
			duties.Go(func() { d.watchHealth(until, *now) })
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
		stop()
		duties.Wait()
	}
}
