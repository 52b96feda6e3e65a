package drivertest

import (
	"context"
	"fmt"
	"time"

	"drover"
	"drover/driver"
)

func checkDescribe(ctx context.Context, t *trial) error {
	d, can := driver.As[driver.Describer](t.cloud)
	if !can {
		return skip("this driver cannot describe a single instance")
	}
	r := t.request()
	in, _, err := t.create(ctx, r)
	if err != nil {
		return err
	}
	described, err := t.described(ctx, d, in.ID)
	if err != nil {
		return err
	}
	if described.ID != in.ID || !described.Candidate().Same(in.Candidate()) {
		return fmt.Errorf("created %s, a %v, but described %s, a %v", in.ID, in.Candidate(), described.ID, described.Candidate())
	}
	if err := wantTags(described, r.Tags); err != nil {
		return err
	}
	if described.Ended != 0 {
		return fmt.Errorf("%s has just been created, but is reported to have ended at %v", in.ID, described.Ended)
	}
	// The instance boots meanwhile, so the two may differ for a moment.
	var listed driver.Instance
	err = t.eventually(ctx, "the description of the instance agrees with the list", func(ctx context.Context) (bool, error) {
		all, err := t.list(ctx, t.fleetTags())
		if err == nil {
			listed = all[in.ID]
			described, err = d.Describe(ctx, in.ID)
		}
		return described.State == listed.State && described.Addresses == listed.Addresses && described.Created == listed.Created, passing(err)
	})
	if err != nil {
		err = fmt.Errorf("%w; described %+v, listed %+v", err, described, listed)
	}
	return err
}

// described waits until a new instance is found by its id, but no longer than the driver's list lag.
func (t *trial) described(ctx context.Context, d driver.Describer, id string) (in driver.Instance, err error) {
	began, lag := time.Now(), t.cloud.Capabilities().Lag()
	err = t.eventually(ctx, "the instance is found by its id", func(ctx context.Context) (bool, error) {
		asked := time.Since(began)
		in, err = d.Describe(ctx, id)
		if err != nil && drover.KindOf(err) == drover.KindNotFound && asked > lag {
			return false, fmt.Errorf("%s cannot be found by its id, %v after it was created, although the driver says that lists lag by at most %v: %w", id, asked, lag, err)
		}
		return err == nil, passing(err)
	})
	return in, err
}

// passing returns nil for an error that a later call may not get.
func passing(err error) error {
	if err != nil && (drover.KindOf(err) == drover.KindNotFound || drover.KindOf(err) == drover.KindTransient) {
		return nil
	}
	return err
}

// describedAs waits until an instance is described in a state, if the cloud supports that.
func (t *trial) describedAs(ctx context.Context, id string, state driver.State) error {
	d, can := driver.As[driver.Describer](t.cloud)
	if !can {
		return nil
	}
	return t.eventually(ctx, fmt.Sprintf("the instance is described as %s", state), func(ctx context.Context) (bool, error) {
		in, err := d.Describe(ctx, id)
		return in.State == state, err
	})
}

// clockSkew is how far a cloud's clock and ours may differ, including a cloud's rounding.
const clockSkew = 5 * time.Second

func checkDescribeGone(ctx context.Context, t *trial) error {
	d, can := driver.As[driver.Describer](t.cloud)
	if !can {
		return skip("this driver cannot describe a single instance")
	}
	made := time.Now()
	in, err := t.gone(ctx)
	if err != nil {
		return err
	}
	began, lag := time.Now(), t.cloud.Capabilities().Lag()
	err = t.eventually(ctx, "the unlisted instance can no longer be found by its id", func(ctx context.Context) (bool, error) {
		asked := time.Since(began)
		left, err := d.Describe(ctx, in.ID)
		switch {
		case err != nil && left.Ended != 0 && (left.Ended.Add(clockSkew) < drover.TimeOf(made) || left.Ended > drover.TimeOf(time.Now().Add(clockSkew))):
			return false, fmt.Errorf("%s was created at %v, but is reported to have ended at %v", in.ID, made, left.Ended)
		case err != nil && drover.KindOf(err) == drover.KindNotFound:
			return true, nil
		case err == nil && asked > lag:
			return false, fmt.Errorf("%v after the last list that contained it, %s is described as %s, although the driver says that lists lag by at most %v", asked, in.ID, left.State, lag)
		}
		return false, passing(err)
	})
	if err != nil {
		return err
	}
	_, err = d.Describe(ctx, "drover-has-no-such-instance")
	return wantKind("describing an instance that never existed", err, drover.KindNotFound)
}
