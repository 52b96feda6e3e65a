package middleware

import (
	"context"
	"time"

	"drover"
	"drover/driver"
)

// dryPause is the delay before the engine may repeat a change that a dry run refused.
const dryPause = 5 * time.Minute

// DryRun wraps a cloud so that it is read and never changed: tell receives each call that would have changed something,
// and the call is refused. A create is refused as if a quota of everything were used up, so that the engine tries no
// alternative and repeats it now and then.
func DryRun(c driver.Cloud, tell func(Call)) driver.Cloud {
	return Intercept(c, func(ctx context.Context, a Call, do func(context.Context) error) error {
		if !a.Method.Changes() {
			return do(ctx)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		tell(a)
		if a.Method == MethodCreate {
			return &drover.Error{Kind: drover.KindQuota, Scope: drover.ScopeAll, Message: "this is a dry run: no instances are created in this cloud"}
		}
		return &drover.Error{Kind: drover.KindForbidden, RetryAt: drover.TimeOf(time.Now().Add(dryPause)),
			Message: "this is a dry run: no instances are changed in this cloud"}
	})
}
