package web

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"drover"
)

// action does what a form requests, and returns the address of the page that shows its result.
type action func(ctx context.Context, r *request) (to string, err error)

// actions returns all forms that change something, by their patterns.
func (h *Handler) actions() map[string]action {
	return map[string]action{
		"/instances/{name}": instruct,
		"/jobs/{id}":        changeJob,
		"/pools/{name}":     resizePool,
		"/{$}":              pause,
	}
}

// acting returns the handler of a form.
func (h *Handler) acting(do action) http.HandlerFunc {
	return h.asReader(func(w http.ResponseWriter, r *request) error {
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		if err := r.ParseForm(); err != nil {
			return drover.Errorf(drover.KindInvalid, "the form cannot be read: %v", err)
		}
		to, err := do(r.Context(), r)
		if err != nil {
			return err
		}
		http.Redirect(w, r.Request, to+"?done", http.StatusSeeOther)
		return nil
	})
}

// maxReason is the length limit of a reason, as in the API.
const maxReason = 1000

// reason returns the reason from the form, which is required.
func (r *request) reason() (string, error) {
	why := strings.TrimSpace(r.PostFormValue("reason"))
	switch {
	case why == "":
		return "", drover.Errorf(drover.KindInvalid, "give a reason: it is recorded, and shown to others")
	case utf8.RuneCountInString(why) > maxReason:
		return "", drover.Errorf(drover.KindInvalid, "a reason may have at most %d characters", maxReason)
	}
	return why, nil
}

// instruct gives an instance one of the operator's verbs.
func instruct(ctx context.Context, r *request) (string, error) {
	why, err := r.reason()
	if err != nil {
		return "", err
	}
	in, err := r.svc.Instruct(ctx, r.PathValue("name"), drover.Verb(r.PostFormValue("verb")), why)
	return here(in.Name), err
}

// resizePool changes a pool's number of instances.
func resizePool(ctx context.Context, r *request) (string, error) {
	why, err := r.reason()
	if err != nil {
		return "", err
	}
	n, err := strconv.Atoi(r.PostFormValue("size"))
	if err != nil || n < 0 {
		return "", drover.Errorf(drover.KindInvalid, "%.20q is not a number of instances", r.PostFormValue("size"))
	}
	p, err := r.svc.ResizePool(ctx, r.PathValue("name"), n, why)
	return "/pools/" + url.PathEscape(p.Name), err
}

// changeJob cancels a job, requeues it, or changes its priority.
func changeJob(ctx context.Context, r *request) (string, error) {
	id, err := jobID(r)
	if err != nil {
		return "", err
	}
	to := "/jobs/" + id.String()
	if r.PostFormValue("do") == "prioritize" {
		n, err := strconv.Atoi(r.PostFormValue("priority"))
		if err != nil {
			return "", drover.Errorf(drover.KindInvalid, "%.20q is not a priority", r.PostFormValue("priority"))
		}
		_, err = r.svc.SetPriority(ctx, id, n)
		return to, err
	}
	why, err := r.reason()
	if err != nil {
		return "", err
	}
	switch do := r.PostFormValue("do"); do {
	case "cancel":
		_, err = r.svc.Cancel(ctx, id, why)
	case "retry":
		_, err = r.svc.Retry(ctx, id, why)
	default:
		err = drover.Errorf(drover.KindInvalid, "%.20q is not an action for a job", do)
	}
	return to, err
}

// pause pauses the queue, or resumes it.
func pause(ctx context.Context, r *request) (string, error) {
	why, err := r.reason()
	if err != nil {
		return "", err
	}
	do := r.PostFormValue("do")
	if do != "pause" && do != "resume" {
		return "", drover.Errorf(drover.KindInvalid, "%.20q is not an action for the queue", do)
	}
	_, err = r.svc.SetPaused(ctx, do == "pause", why)
	return "/", err
}
