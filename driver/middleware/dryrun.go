package middleware

import (
	"context"
	"time"

	"drover"
	"drover/driver"
)

// dryPause is how long a change that a dry run refused should be left alone.
const dryPause = 5 * time.Minute

// DryRun wraps a cloud so that it is looked at and never changed: tell is told of each call that would have changed something, and the call
// is refused. A create is refused as by a quota over everything, so that nothing else is tried in its place and it is asked again, now and
// then, for as long as it is wanted. What is there stays.
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
			return &drover.Error{Kind: drover.KindQuota, Scope: drover.ScopeAll, Message: "a dry run: nothing is created in this cloud"}
		}
		return &drover.Error{Kind: drover.KindForbidden, RetryAt: drover.TimeOf(time.Now().Add(dryPause)),
			Message: "a dry run: nothing is changed in this cloud"}
	})
}
