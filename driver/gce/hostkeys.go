package gce

import (
	"context"
	"encoding/base64"

	"drover"
	"drover/driver"
)

// hostKeys is where Google's agent on an instance writes the host keys, as it boots.
const hostKeys = "hostkeys/"

// VerifyHostKey asks Google for the host keys that the instance told it.
func (c *cloud) VerifyHostKey(ctx context.Context, in driver.Instance, key, _ []byte) error {
	if c.config.Init == initCloud {
		return drover.Errorf(drover.KindUnsupported, "host keys are planted, not asked for")
	}
	zone, name, err := split(in.ID)
	if err != nil {
		return err
	}
	told, err := c.api.guest(ctx, zone, name, hostKeys)
	switch {
	case errs.KindOf(err) == drover.KindNotFound:
		return drover.Errorf(drover.KindTransient, "instance %s has not told its host keys yet", in.ID)
	case err != nil:
		return errs.Classify("ask for the host keys of instance "+in.ID, err)
	case told.QueryValue == nil || len(told.QueryValue.Items) == 0:
		return drover.Errorf(drover.KindTransient, "instance %s has not told its host keys yet", in.ID)
	}
	for _, item := range told.QueryValue.Items {
		if item.Value == base64.StdEncoding.EncodeToString(key) {
			return nil
		}
	}
	return drover.Errorf(drover.KindHostKey, "instance %s has other host keys", in.ID)
}
