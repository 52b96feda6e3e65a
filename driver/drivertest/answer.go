package drivertest

import (
	"net/http"
	"net/http/httptest"
	"time"
)

// Answer lets the fake of a cloud answer a request after a latency, without a network, as a bubble of synctest
// requires. A caller that no longer waits gets no answer, although the fake may have carried out the request.
func Answer(fake http.Handler, r *http.Request, latency time.Duration) (*http.Response, error) {
	select {
	case <-time.After(latency):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	if r.Body == nil {
		r = r.Clone(r.Context())
		r.Body = http.NoBody
	}
	w := httptest.NewRecorder()
	fake.ServeHTTP(w, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	answer := w.Result()
	answer.Request = r
	return answer, nil
}
