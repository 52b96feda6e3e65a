package driver

import (
	"context"

	"drover"
)

// Call is a kind of call to a cloud.
type Call string

// The kinds of call: those that every cloud takes, then those that some do.
const (
	CallOfferings Call = "list_offerings"
	CallCreate    Call = "create"
	CallList      Call = "list_instances"
	CallDestroy   Call = "destroy"
	CallSetTags   Call = "set_tags"
	CallVerify    Call = "verify_host_key"

	CallDescribe Call = "describe"
	CallStop     Call = "stop"
	CallStart    Call = "start"
	CallGrow     Call = "grow_disk"
	CallPrices   Call = "list_prices"
	CallImages   Call = "find_images"
	CallStrays   Call = "list_strays"
	CallRemove   Call = "remove"
)

// Changes reports whether such calls change what there is in the account.
func (c Call) Changes() bool {
	switch c {
	case CallCreate, CallDestroy, CallSetTags, CallStop, CallStart, CallGrow, CallRemove:
		return true
	}
	return false
}

// Asked is one call, as what stands around a cloud sees it.
type Asked struct {
	Call   Call
	ID     string         // of the instance or stray that it is about; of a create, the name
	Create *CreateRequest // of a create
}

// Around is what is done in the place of each call: it may do the call, or leave it, and says what came of it. If it does one again, the last
// answer counts.
type Around func(ctx context.Context, a Asked, do func(context.Context) error) error

// around is a Cloud that puts every call, also those that only some clouds take, through one function.
type around struct {
	Cloud
	step Around
}

// Surround wraps a cloud so that each of its calls goes through step. Capabilities and Close are no calls to the cloud.
func Surround(c Cloud, step Around) Cloud { return &around{c, step} }

// Unwrap returns the cloud within.
func (c *around) Unwrap() Cloud { return c.Cloud }

func (c *around) Offerings(ctx context.Context) (all []drover.Offering, err error) {
	return answer(ctx, c, Asked{Call: CallOfferings}, c.Cloud.Offerings)
}

func (c *around) Create(ctx context.Context, r CreateRequest) (in Instance, taken Candidate, err error) {
	err = c.step(ctx, Asked{Call: CallCreate, ID: r.Name, Create: &r}, func(ctx context.Context) (err error) {
		in, taken, err = c.Cloud.Create(ctx, r)
		return err
	})
	if err != nil {
		return Instance{}, Candidate{}, err
	}
	return in, taken, nil
}

func (c *around) List(ctx context.Context, tags map[string]string) ([]Instance, error) {
	return answer(ctx, c, Asked{Call: CallList}, func(ctx context.Context) ([]Instance, error) { return c.Cloud.List(ctx, tags) })
}

func (c *around) Destroy(ctx context.Context, id string) error {
	return c.step(ctx, Asked{Call: CallDestroy, ID: id}, func(ctx context.Context) error { return c.Cloud.Destroy(ctx, id) })
}

func (c *around) SetTags(ctx context.Context, id string, tags map[string]string) error {
	return c.step(ctx, Asked{Call: CallSetTags, ID: id}, func(ctx context.Context) error { return c.Cloud.SetTags(ctx, id, tags) })
}

func (c *around) VerifyHostKey(ctx context.Context, in Instance, key, output []byte) error {
	return c.step(ctx, Asked{Call: CallVerify, ID: in.ID}, func(ctx context.Context) error { return c.Cloud.VerifyHostKey(ctx, in, key, output) })
}

func (c *around) Describe(ctx context.Context, id string) (in Instance, err error) {
	err = onlyIf(ctx, c, Asked{Call: CallDescribe, ID: id}, func(ctx context.Context, d Describer) (err error) {
		in, err = d.Describe(ctx, id)
		return err
	})
	if err != nil {
		return Instance{}, err
	}
	return in, nil
}

func (c *around) Stop(ctx context.Context, id string) error {
	return onlyIf(ctx, c, Asked{Call: CallStop, ID: id}, func(ctx context.Context, s Starter) error { return s.Stop(ctx, id) })
}

func (c *around) Start(ctx context.Context, id string) error {
	return onlyIf(ctx, c, Asked{Call: CallStart, ID: id}, func(ctx context.Context, s Starter) error { return s.Start(ctx, id) })
}

func (c *around) GrowDisk(ctx context.Context, id string, size drover.Bytes) error {
	return onlyIf(ctx, c, Asked{Call: CallGrow, ID: id}, func(ctx context.Context, g DiskGrower) error { return g.GrowDisk(ctx, id, size) })
}

func (c *around) PriceHistory(ctx context.Context, providerType, zone string, m drover.Market, since drover.Time) (all []PricePoint, err error) {
	err = onlyIf(ctx, c, Asked{Call: CallPrices}, func(ctx context.Context, h PriceHistorian) (err error) {
		all, err = h.PriceHistory(ctx, providerType, zone, m, since)
		return err
	})
	return all, err
}

func (c *around) FindImages(ctx context.Context, ref string, arch drover.Arch) (all []Image, err error) {
	err = onlyIf(ctx, c, Asked{Call: CallImages, ID: ref}, func(ctx context.Context, f ImageFinder) (err error) {
		all, err = f.FindImages(ctx, ref, arch)
		return err
	})
	return all, err
}

func (c *around) Strays(ctx context.Context, fleet string) (all []Stray, err error) {
	err = onlyIf(ctx, c, Asked{Call: CallStrays}, func(ctx context.Context, s Sweeper) (err error) {
		all, err = s.Strays(ctx, fleet)
		return err
	})
	return all, err
}

func (c *around) Remove(ctx context.Context, s Stray) error {
	return onlyIf(ctx, c, Asked{Call: CallRemove, ID: s.Kind + " " + s.ID}, func(ctx context.Context, sweeper Sweeper) error { return sweeper.Remove(ctx, s) })
}

// answer puts a call through whose answer is a list. One that failed has none.
func answer[T any](ctx context.Context, c *around, a Asked, call func(context.Context) ([]T, error)) (all []T, err error) {
	err = c.step(ctx, a, func(ctx context.Context) (err error) {
		all, err = call(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// onlyIf puts a call through if the cloud within takes it.
func onlyIf[T any](ctx context.Context, c *around, a Asked, call func(context.Context, T) error) error {
	within, can := As[T](c.Cloud)
	if !can {
		return drover.Errorf(drover.KindUnsupported, "%s: this cloud cannot", a.Call)
	}
	return c.step(ctx, a, func(ctx context.Context) error { return call(ctx, within) })
}
