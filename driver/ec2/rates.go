package ec2

import (
	"sync"
	"time"

	"drover"
)

// rate is a token bucket: so many calls at once, then so many a second.
type rate struct{ burst, perSecond int }

// The rates are those of "Request token bucket sizes and refill rates" in Amazon's developer guide to EC2, for each account and region:
// https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-throttling.html. Each call has a bucket of its own.
var rates = map[string]rate{
	"CreateFleet":                   {50, 5},
	"CreateLaunchTemplate":          {50, 5},
	"DeleteLaunchTemplate":          {50, 5},
	"ImportKeyPair":                 {50, 5},
	"DeleteKeyPair":                 {50, 5},
	"StopInstances":                 {50, 5},
	"StartInstances":                {5, 2},
	"TerminateInstances":            {100, 5},
	"DeleteVolume":                  {100, 5},
	"CreateTags":                    {100, 10},
	"DeleteTags":                    {100, 10},
	"DescribeInstances":             {100, 20},
	"DescribeInstanceTypes":         {100, 20},
	"DescribeInstanceTypeOfferings": {100, 20},
	"DescribeSpotPriceHistory":      {100, 20},
	"DescribeSubnets":               {100, 20},
	"DescribeImages":                {100, 20},
	"DescribeLaunchTemplates":       {100, 20},
	"DescribeKeyPairs":              {100, 20},
	"DescribeVolumes":               {100, 20},
}

// budget keeps the calls of this process within the rates: what is beyond is refused here, at once, and never waits. Others share the
// account, so the cloud may refuse sooner. It is the generic cell rate algorithm (ITU-T I.371): of each call it is enough to know when its
// bucket will be full again.
type budget struct {
	times int // the rates, multiplied

	mu   sync.Mutex
	full map[string]time.Time // guarded by mu
}

// take takes a token for a call, or is KindRateLimit with the time at which there is one. A call without a published rate has no limit.
func (b *budget) take(call string, now time.Time) error {
	r, ok := rates[call]
	if !ok {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	each := time.Second / time.Duration(r.perSecond*b.times)
	full := b.full[call]
	if full.Before(now) {
		full = now
	}
	if room := full.Add(each).Add(-each * time.Duration(r.burst*b.times)); room.After(now) {
		return &drover.Error{Kind: drover.KindRateLimit, RetryAt: drover.TimeOf(room),
			Message: call + ": as many calls were made as EC2 allows at once"}
	}
	b.full[call] = full.Add(each)
	return nil
}
