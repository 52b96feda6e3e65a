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

// MaxPages is the most pages that a list may have: Drover's lists are shorter, so a cloud that returns more is broken.
const MaxPages = 1000

// ErrEndless is the error for a list with more than MaxPages pages.
var ErrEndless = fmt.Errorf("the list has more than %d pages", MaxPages)

// Collect reads all pages of a list, each by the token that the previous one returned, until there is none. If a page
// fails, or returns its own token, it returns nothing else.
func Collect[T any](page func(token string) (some []T, after string, err error)) (all []T, err error) {
	token := ""
	for range MaxPages {
		some, after, err := page(token)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
		switch after {
		case "":
			return all, nil
		case token: // as behind a cache that ignores the token
			return nil, errors.New("a page of the list names itself as the next page")
		}
		token = after
	}
	return nil, ErrEndless
}

// CollectNumbered reads all pages of a list whose pages are numbered from 1, where each contains the number of the
// last. If entries are deleted meanwhile, later ones move to the front, and reading forward could miss some. So it
// reads backward, where an entry that moves is at worst read twice. The list must be sorted oldest first. If a page
// fails, it returns nothing else.
func CollectNumbered[T any](page func(number int) (some []T, last int, err error)) (all []T, err error) {
	first, last, err := page(1)
	if err != nil {
		return nil, err
	}
	if last <= 1 {
		return first, nil
	}
	for n := last; n >= 1; n-- {
		if n > MaxPages {
			return nil, ErrEndless
		}
		some, now, err := page(n)
		if err != nil {
			return nil, err
		}
		if now > last { // more pages have appeared; read them first
			last, n = now, now+1
			continue
		}
		all = append(all, some...)
	}
	return all, nil
}

// maxWait limits the wait that a cloud can request.
const maxWait = time.Hour

// RetryAfter returns the wait that an answer requests, in seconds or until a date, at most an hour; 0 if it requests
// none.
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

// ReadTime reads a time as most clouds write it; 0 if it is not valid.
func ReadTime(text string) drover.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return 0
	}
	return drover.TimeOf(t)
}

// ReadPrice reads an amount of money with any number of decimals.
func ReadPrice(text string) (drover.Money, error) {
	if point := strings.IndexByte(text, '.'); point >= 0 {
		text = text[:min(len(text), point+1+9)]
	}
	return drover.ParseMoney(text)
}

// Each applies a function to every element.
func Each[S, T any](all []S, become func(S) T) (each []T) {
	for _, one := range all {
		each = append(each, become(one))
	}
	return each
}
