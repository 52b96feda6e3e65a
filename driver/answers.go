package driver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"drover"
)

// maxPages is how many pages an answer has at most: no list of ours is longer, so a cloud that goes on is broken.
const maxPages = 1000

// Collect asks for page after page, each by the token that the one before it named, the first by none, until a page names none. What comes to
// an early end is nothing.
func Collect[T any](page func(token string) (some []T, after string, err error)) (all []T, err error) {
	token := ""
	for range maxPages {
		some, after, err := page(token)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
		if after == "" {
			return all, nil
		}
		token = after
	}
	return nil, fmt.Errorf("more than %d pages", maxPages)
}

// Classed deals with an error that its cloud need not classify, and reports whether it was one: none at all, one that has a class, which it
// keeps, and the end of a context, which stays recognisable.
func Classed(doing string, err error) (told error, done bool) {
	var classed *drover.Error
	switch {
	case err == nil:
		return nil, true
	case errors.As(err, &classed), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s: %w", doing, err), true
	}
	return nil, false
}

// RetryAfter is how long an answer asks to wait, in seconds or until a date, believed up to an hour; 0 if it does not ask.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	text := h.Get("Retry-After")
	wait := time.Duration(0)
	if seconds, err := strconv.Atoi(text); err == nil {
		wait = time.Duration(min(seconds, int(mostSaid/time.Second))) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		wait = at.Sub(now)
	}
	return min(max(0, wait), mostSaid)
}
