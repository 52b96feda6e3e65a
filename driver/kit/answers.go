package kit

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"drover"
)

// MaxPages is how many pages an answer has at most: no list of ours is longer, so a cloud that goes on is broken.
const MaxPages = 1000

// ErrEndless is an error for an answer that goes on.
var ErrEndless = fmt.Errorf("more than %d pages", MaxPages)

// Collect asks for page after page, each by the token that the one before it named, the first by none, until a page names none. What comes to
// an early end is nothing.
func Collect[T any](page func(token string) (some []T, after string, err error)) (all []T, err error) {
	token := ""
	for range MaxPages {
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
	return nil, ErrEndless
}

// CollectNumbered asks for pages that have numbers, from 1 on, each of which tells the number of the last as far as it knows. What goes meanwhile
// moves all that comes after it to the front: read from the first page on, something could be passed over. So they are read from the last one
// on, and what moves is met twice at worst. That needs an order in which what is new comes last.
func CollectNumbered[T any](page func(number int) (some []T, last int, err error)) (all []T, err error) {
	all, last, err := page(1)
	if err != nil || last <= 1 {
		return all, err
	}
	all = nil
	for n := last; n >= 1; n-- {
		if n > MaxPages {
			return nil, ErrEndless
		}
		some, now, err := page(n)
		if err != nil {
			return nil, err
		}
		if now > last { // there are more meanwhile, and they come first
			last, n = now, now+1
			continue
		}
		all = append(all, some...)
	}
	return all, nil
}

// Answered is an error if a request failed or was answered by one.
func Answered(answer *http.Response, err error) error {
	if err == nil && answer.StatusCode >= http.StatusBadRequest {
		return errors.New(answer.Status)
	}
	return err
}

// maxWait is the longest wait that a cloud is believed to ask for: it might say anything.
const maxWait = time.Hour

// RetryAfter is how long an answer asks to wait, in seconds or until a date, believed up to an hour; 0 if it does not ask.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	text := h.Get("Retry-After")
	wait := time.Duration(0)
	if seconds, err := strconv.Atoi(text); err == nil {
		wait = time.Duration(min(seconds, int(maxWait/time.Second))) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		wait = at.Sub(now)
	}
	return min(max(0, wait), maxWait)
}

// ReadTime reads a time as most clouds write it; 0 for what is none.
func ReadTime(text string) drover.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return 0
	}
	return drover.TimeOf(t)
}

// ReadPrice reads an amount of money, with as many decimals as a cloud likes to write.
func ReadPrice(text string) (drover.Money, error) {
	if point := strings.IndexByte(text, '.'); point >= 0 {
		text = text[:min(len(text), point+1+9)]
	}
	return drover.ParseMoney(text)
}

// Each is what becomes of each.
func Each[S, T any](all []S, become func(S) T) (each []T) {
	for _, one := range all {
		each = append(each, become(one))
	}
	return each
}
