package httpapi

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"drover"
)

// These functions encode filters as parameters of the routes: the client sends them, and the handler links to the next
// page with them.

func jobQuery(f drover.JobFilter) url.Values {
	q := url.Values{}
	put(q, "job", f.Job)
	put(q, "batch", f.Batch)
	put(q, "user", f.User)
	put(q, "mine", f.Mine)
	put(q, "state", join(f.States))
	for _, key := range slices.Sorted(maps.Keys(f.Labels)) {
		q.Add("label", key+"="+f.Labels[key])
	}
	put(q, "elements", f.Elements)
	put(q, "tried", f.Tried)
	put(q, "match", f.Match)
	put(q, "newest", f.Newest)
	put(q, "since", f.Since)
	put(q, "after", f.After)
	put(q, "limit", f.Limit)
	return q
}

func instanceQuery(f drover.InstanceFilter) url.Values {
	q := url.Values{}
	put(q, "gone", f.Gone)
	put(q, "state", join(f.States))
	put(q, "cloud", f.Cloud)
	put(q, "since", f.Since)
	put(q, "newest", f.Newest)
	put(q, "attempts", f.Attempts)
	put(q, "after", f.After)
	put(q, "limit", f.Limit)
	return q
}

func offerQuery(f drover.OfferFilter) url.Values {
	q := url.Values{}
	put(q, "vcpus", f.Need.CPU)
	put(q, "memory", int64(f.Need.Memory))
	put(q, "disk", int64(f.Need.Disk))
	put(q, "gpus", f.Need.GPUs)
	put(q, "arch", string(f.Need.Arch))
	put(q, "cloud", f.Cloud)
	put(q, "all", f.All)
	return q
}

func eventQuery(f drover.EventFilter) url.Values {
	q := url.Values{}
	put(q, "after", f.After)
	put(q, "job", f.Job)
	put(q, "instance", f.Instance)
	put(q, "level", f.Level)
	put(q, "recent", f.Recent)
	put(q, "last", f.Last)
	return q
}

// put sets a parameter, unless it has its zero value, which means the same as none.
func put(q url.Values, key string, value any) {
	switch v := value.(type) {
	case string:
		if v != "" {
			q.Set(key, v)
		}
	case bool:
		if v {
			q.Set(key, "true")
		}
	case int:
		put(q, key, int64(v))
	case int64:
		if v != 0 {
			q.Set(key, strconv.FormatInt(v, 10))
		}
	case drover.MilliCPU:
		if v != 0 {
			q.Set(key, v.String())
		}
	case drover.Time:
		if v != 0 {
			q.Set(key, v.String())
		}
	case drover.JobID:
		if v.Number != 0 {
			q.Set(key, v.String())
		}
	}
}

func join[S ~string](words []S) string {
	var b strings.Builder
	for i, w := range words {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(string(w))
	}
	return b.String()
}

// nextLink returns a link to the next page of a list (RFC 8288); empty on the last.
func nextLink(path string, q url.Values, next string) string {
	if next == "" {
		return ""
	}
	q.Set("after", next)
	return "<" + path + "?" + q.Encode() + `>; rel="next"`
}

// nextOf returns the value of after for the next page that a Link header names; empty if it names none.
func nextOf(link string) string {
	target, rest, _ := strings.Cut(strings.TrimPrefix(link, "<"), ">")
	u, err := url.Parse(target)
	if err != nil || !strings.Contains(rest, `rel="next"`) {
		return ""
	}
	return u.Query().Get("after")
}

// array returns a list for JSON: without items it is empty, not null.
func array[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}
