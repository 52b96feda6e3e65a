package timers

import "time"

// Backoff returns the delay before the n-th try in a row: first, doubled each time, at most most.
func Backoff(n int, first, most time.Duration) time.Duration {
	for ; n > 1 && first < most; n-- {
		first *= 2
	}
	return min(first, most)
}
