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

// orders are the latest from a controller. A daemon obeys its predecessor's until new ones come.
type orders struct {
	last    *wire.Orders  // nil if none ever came; guarded by daemon.mu
	changed chan struct{} // closed when new ones come; guarded by daemon.mu
}

// readOrders returns the folder's orders. It treats unreadable orders as none: the next controller sends new ones.
func readOrders() orders {
	var o wire.Orders
	if readJSON(ordersFile, &o) != nil {
		return orders{changed: make(chan struct{})}
	}
	return orders{last: &o, changed: make(chan struct{})}
}

// readJSON reads one of the runner's small JSON files.
func readJSON(name string, into any) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// takeLocked accepts orders. If they cannot be stored, they still hold until this daemon ends.
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

// obey carries out the orders until ctx ends. When they change it starts again.
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
