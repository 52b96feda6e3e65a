package queue

import (
	"cmp"
	"iter"
	"slices"
)

// roster holds jobs by number, in pages of limited length: there may be a million, and they end in any order.
type roster struct {
	pages [][]*Job
	count int
}

// pageLength is the length above which a page is split.
const pageLength = 1024

// page returns the position of the page where a number is, or would be.
func (r *roster) page(number int64) int {
	at, _ := slices.BinarySearchFunc(r.pages, number, func(p []*Job, n int64) int { return cmp.Compare(p[len(p)-1].Number, n) })
	return at
}

// find returns the job with a number, nil if there is none.
func (r *roster) find(number int64) *Job {
	p := r.page(number)
	if p == len(r.pages) {
		return nil
	}
	at, ok := slices.BinarySearchFunc(r.pages[p], number, byNumber)
	if !ok {
		return nil
	}
	return r.pages[p][at]
}

// add adds a job.
func (r *roster) add(j *Job) {
	p := r.page(j.Number)
	if p == len(r.pages) { // the usual case: numbers rise
		if p--; p < 0 || len(r.pages[p]) == pageLength {
			p++
			r.pages = append(r.pages, make([]*Job, 0, pageLength))
		}
	}
	at, _ := slices.BinarySearchFunc(r.pages[p], j.Number, byNumber)
	r.pages[p] = slices.Insert(r.pages[p], at, j)
	r.count++
	if page := r.pages[p]; len(page) > pageLength {
		half := slices.Clone(page[pageLength/2:])
		r.pages[p] = slices.Delete(page, pageLength/2, len(page))
		r.pages = slices.Insert(r.pages, p+1, half)
	}
}

// remove removes a job.
func (r *roster) remove(number int64) {
	p := r.page(number)
	if p == len(r.pages) {
		return
	}
	at, ok := slices.BinarySearchFunc(r.pages[p], number, byNumber)
	if !ok {
		return
	}
	r.count--
	if r.pages[p] = slices.Delete(r.pages[p], at, at+1); len(r.pages[p]) == 0 {
		r.pages = slices.Delete(r.pages, p, p+1)
	}
}

// all iterates over the jobs. None may be added or removed meanwhile.
func (r *roster) all() iter.Seq[*Job] {
	return func(yield func(*Job) bool) {
		for _, page := range r.pages {
			for _, j := range page {
				if !yield(j) {
					return
				}
			}
		}
	}
}
