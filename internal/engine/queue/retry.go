package queue

import (
	"time"

	"drover"
	"drover/internal/engine/timers"
)

// maxRetryDelay is the longest delay between retries.
const maxRetryDelay = time.Hour

// RetryDelay returns how long an element waits before its next retry: each time twice as long as the time before.
func RetryDelay(r drover.Retry, tries int) time.Duration {
	return timers.Backoff(tries, r.Delay, max(r.Delay, maxRetryDelay))
}
