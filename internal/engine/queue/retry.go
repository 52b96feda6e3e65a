package queue

import (
	"time"

	"drover"
)

// maxRetryDelay is the longest delay between retries.
const maxRetryDelay = time.Hour

// RetryDelay returns how long an element waits before its next retry: each time twice as long as the time before.
func RetryDelay(r drover.Retry, tries int) time.Duration {
	d := r.Delay
	for range tries - 1 {
		d = min(2*d, max(r.Delay, maxRetryDelay))
	}
	return d
}
