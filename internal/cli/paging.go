package cli

import (
	"context"
	"iter"
	"strconv"

	"drover"
)

// allJobs lists all jobs that a filter chooses, page by page.
func allJobs(ctx context.Context, svc drover.Queue, f drover.JobFilter) iter.Seq2[drover.Job, error] {
	return pages(func(after string) (drover.Page[drover.Job], error) {
		if after != "" {
			id, err := drover.ParseJobID(after)
			if err != nil {
				return drover.Page[drover.Job]{}, err
			}
			f.After = id
		}
		return svc.Jobs(ctx, f)
	})
}

// idsOf returns the ids of listed jobs.
func idsOf(jobs iter.Seq2[drover.Job, error]) (ids []drover.JobID, err error) {
	for job, err := range jobs {
		if err != nil {
			return nil, err
		}
		ids = append(ids, job.ID)
	}
	return ids, nil
}

// allInstances lists all instances that a filter chooses, page by page.
func allInstances(ctx context.Context, svc drover.Fleet, f drover.InstanceFilter) iter.Seq2[drover.Instance, error] {
	return pages(func(after string) (drover.Page[drover.Instance], error) {
		if after != "" {
			id, err := strconv.ParseInt(after, 10, 64)
			if err != nil {
				return drover.Page[drover.Instance]{}, err
			}
			f.After = id
		}
		return svc.Instances(ctx, f)
	})
}

// pages joins the pages of a list, each of which names the next.
func pages[T any](next func(after string) (drover.Page[T], error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for after := ""; ; {
			page, err := next(after)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, item := range page.Items {
				if !yield(item, nil) {
					return
				}
			}
			if page.Next == "" || page.Next == after {
				return
			}
			after = page.Next
		}
	}
}

// each turns an existing slice into a list for printList.
func each[T any](items []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, item := range items {
			if !yield(item, nil) {
				return
			}
		}
	}
}

// gather collects a whole list.
func gather[T any](items iter.Seq2[T, error]) (all []T, err error) {
	for item, err := range items {
		if err != nil {
			return all, err
		}
		all = append(all, item)
	}
	return all, nil
}
