// Package middleware contains the decorators for every cloud. Each is itself a cloud.
//
// A decorator sees each call, including those of the optional interfaces, and may make, refuse or change it. It adds no
// ability that the cloud inside lacks: driver.As finds an interface only if the innermost cloud has it. Most decorators
// are one function, passed to Intercept.
package middleware

import (
	"context"

	"drover"
	"drover/driver"
)

// Method is a kind of call to a cloud.
type Method string

// The kinds of call: first those of every cloud, then the optional ones.
const (
	MethodOfferings Method = "list_offerings"
	MethodCreate    Method = "create"
	MethodList      Method = "list_instances"
	MethodDestroy   Method = "destroy"
	MethodSetTags   Method = "set_tags"
	MethodVerify    Method = "verify_host_key"

	MethodDescribe  Method = "describe"
	MethodStop      Method = "stop"
	MethodStart     Method = "start"
	MethodGrow      Method = "grow_disk"
	MethodPrices    Method = "list_prices"
	MethodImages    Method = "find_images"
	MethodAttribute Method = "read_attribute"
	MethodLeftovers Method = "list_leftovers"
	MethodRemove    Method = "remove"
)

// Changes reports whether such calls change anything in the account.
func (c Method) Changes() bool {
	switch c {
	case MethodCreate, MethodDestroy, MethodSetTags, MethodStop, MethodStart, MethodGrow, MethodRemove:
		return true
	}
	return false
}

// Call is one call, as a decorator sees it.
type Call struct {
	Method Method
	ID     string                // of the instance or leftover concerned; for a create, the name
	Create *driver.CreateRequest // for a create only
}

// Interceptor replaces each call: it may make the call or not, and returns the result. If it makes the call several
// times, the last answer counts.
type Interceptor func(ctx context.Context, a Call, do func(context.Context) error) error

// intercepted is a Cloud that passes every call, including those of optional interfaces, through one function.
type intercepted struct {
	driver.Cloud
	step Interceptor
}

// Intercept wraps a cloud so that each of its calls goes through step, except Capabilities and Close, which do not call
// the cloud.
func Intercept(c driver.Cloud, step Interceptor) driver.Cloud { return &intercepted{c, step} }

// Unwrap returns the cloud within.
func (c *intercepted) Unwrap() driver.Cloud { return c.Cloud }

func (c *intercepted) Offerings(ctx context.Context) (all []drover.Offering, err error) {
	return answer(ctx, c, Call{Method: MethodOfferings}, c.Cloud.Offerings)
}

func (c *intercepted) Create(ctx context.Context, r driver.CreateRequest) (in driver.Instance, taken driver.Candidate, err error) {
	err = c.step(ctx, Call{Method: MethodCreate, ID: r.Name, Create: &r}, func(ctx context.Context) (err error) {
		in, taken, err = c.Cloud.Create(ctx, r)
		return err
	})
	if err != nil {
		return driver.Instance{}, driver.Candidate{}, err
	}
	return in, taken, nil
}

func (c *intercepted) List(ctx context.Context, tags map[string]string) ([]driver.Instance, error) {
	return answer(ctx, c, Call{Method: MethodList}, func(ctx context.Context) ([]driver.Instance, error) { return c.Cloud.List(ctx, tags) })
}

func (c *intercepted) Destroy(ctx context.Context, id string) error {
	return c.step(ctx, Call{Method: MethodDestroy, ID: id}, func(ctx context.Context) error { return c.Cloud.Destroy(ctx, id) })
}

func (c *intercepted) SetTags(ctx context.Context, id string, tags map[string]string) error {
	return c.step(ctx, Call{Method: MethodSetTags, ID: id}, func(ctx context.Context) error { return c.Cloud.SetTags(ctx, id, tags) })
}

func (c *intercepted) VerifyHostKey(ctx context.Context, in driver.Instance, key, output []byte) error {
	return c.step(ctx, Call{Method: MethodVerify, ID: in.ID}, func(ctx context.Context) error { return c.Cloud.VerifyHostKey(ctx, in, key, output) })
}

func (c *intercepted) Describe(ctx context.Context, id string) (in driver.Instance, err error) {
	err = onlyIf(ctx, c, Call{Method: MethodDescribe, ID: id}, func(ctx context.Context, d driver.Describer) (err error) {
		in, err = d.Describe(ctx, id)
		return err
	})
	if err != nil {
		return driver.Instance{Ended: in.Ended}, err
	}
	return in, nil
}

func (c *intercepted) Stop(ctx context.Context, id string) error {
	return onlyIf(ctx, c, Call{Method: MethodStop, ID: id}, func(ctx context.Context, s driver.Starter) error { return s.Stop(ctx, id) })
}

func (c *intercepted) Start(ctx context.Context, id string) error {
	return onlyIf(ctx, c, Call{Method: MethodStart, ID: id}, func(ctx context.Context, s driver.Starter) error { return s.Start(ctx, id) })
}

func (c *intercepted) GrowDisk(ctx context.Context, id string, size drover.Bytes) error {
	return onlyIf(ctx, c, Call{Method: MethodGrow, ID: id}, func(ctx context.Context, g driver.DiskGrower) error { return g.GrowDisk(ctx, id, size) })
}

func (c *intercepted) PriceHistory(ctx context.Context, providerType, zone string, m drover.Market, since drover.Time) (all []driver.PricePoint, err error) {
	err = onlyIf(ctx, c, Call{Method: MethodPrices}, func(ctx context.Context, h driver.PriceHistorian) (err error) {
		all, err = h.PriceHistory(ctx, providerType, zone, m, since)
		return err
	})
	return all, err
}

func (c *intercepted) FindImages(ctx context.Context, ref string, arch drover.Arch) (all []driver.Image, err error) {
	err = onlyIf(ctx, c, Call{Method: MethodImages, ID: ref}, func(ctx context.Context, f driver.ImageFinder) (err error) {
		all, err = f.FindImages(ctx, ref, arch)
		return err
	})
	return all, err
}

func (c *intercepted) Attribute(ctx context.Context, name string) (text string, err error) {
	err = onlyIf(ctx, c, Call{Method: MethodAttribute, ID: name}, func(ctx context.Context, a driver.Attributes) (err error) {
		text, err = a.Attribute(ctx, name)
		return err
	})
	return text, err
}

func (c *intercepted) Leftovers(ctx context.Context, fleet string) (all []driver.Leftover, err error) {
	err = onlyIf(ctx, c, Call{Method: MethodLeftovers}, func(ctx context.Context, r driver.Reaper) (err error) {
		all, err = r.Leftovers(ctx, fleet)
		return err
	})
	return all, err
}

func (c *intercepted) Remove(ctx context.Context, l driver.Leftover) error {
	return onlyIf(ctx, c, Call{Method: MethodRemove, ID: l.Kind + " " + l.ID}, func(ctx context.Context, r driver.Reaper) error { return r.Remove(ctx, l) })
}

// answer makes a call that returns a list. If the call fails, the list is nil.
func answer[T any](ctx context.Context, c *intercepted, a Call, call func(context.Context) ([]T, error)) (all []T, err error) {
	err = c.step(ctx, a, func(ctx context.Context) (err error) {
		all, err = call(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// onlyIf makes a call if the cloud within supports it.
func onlyIf[T any](ctx context.Context, c *intercepted, a Call, call func(context.Context, T) error) error {
	within, can := driver.As[T](c.Cloud)
	if !can {
		return drover.Errorf(drover.KindUnsupported, "%s: this cloud does not support that", a.Method)
	}
	return c.step(ctx, a, func(ctx context.Context) error { return call(ctx, within) })
}
