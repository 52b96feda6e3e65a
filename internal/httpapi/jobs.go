package httpapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"drover"
	"drover/internal/config"
)

type submitInput struct {
	Key         string `header:"Idempotency-Key" maxLength:"255" doc:"a batch sent again with the same key is not submitted twice"`
	User        string `query:"user" maxLength:"64" doc:"the user to submit for, if not the token's user; only for administrators"`
	ContentType string `header:"Content-Type" hidden:"true"`
	RawBody     []byte
}

func (*submitInput) describe(op *huma.Operation) {
	schema := batchSchema()
	op.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
		"application/json": {Schema: schema}, "application/yaml": {Schema: schema},
	}}
	op.SkipValidateBody = true // config does, and reports where it fails
	op.MaxBodyBytes = maxBatch
	op.DefaultStatus = http.StatusCreated
}

type submitOutput struct {
	Location string `header:"Location"`
	Body     drover.Receipt
}

func (h *Handler) submit(ctx context.Context, in *submitInput) (*submitOutput, error) {
	if err := checkBatchType(in.ContentType, in.RawBody); err != nil {
		return nil, err
	}
	batch, err := config.ParseSubmission("body", in.RawBody)
	if err != nil {
		return nil, err
	}
	if batch.User, err = submitter(ctx, in.User); err != nil {
		return nil, err
	}
	receipt, err := h.cfg.Service.Submit(ctx, drover.Submission{Batch: batch, Key: in.Key})
	if err != nil {
		return nil, err
	}
	receipt.Jobs = array(receipt.Jobs)
	return &submitOutput{"/v1/jobs?" + url.Values{"batch": {receipt.Batch}}.Encode(), receipt}, nil
}

// checkBatchType refuses a body with the content type of something else. YAML has several, and may also come as JSON.
func checkBatchType(contentType string, body []byte) error {
	media, _, err := mime.ParseMediaType(contentType)
	switch {
	case contentType == "":
		return nil
	case err == nil && media == "application/json":
		if err := json.Unmarshal(body, new(json.RawMessage)); err != nil && bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")) {
			return drover.Errorf(drover.KindInvalid, "the body is not valid JSON: %v", err)
		}
		return nil
	case err == nil && (media == "application/yaml" || media == "application/x-yaml" || media == "text/yaml"):
		return nil
	}
	return newProblem(http.StatusUnsupportedMediaType, drover.Errorf(drover.KindInvalid, "a batch cannot have the content type %q", cut(contentType)).
		WithHint("send it with Content-Type: application/yaml or application/json"))
}

// submitter returns the user of a submission's jobs.
func submitter(ctx context.Context, wanted string) (string, error) {
	id := drover.IdentityOf(ctx)
	switch {
	case wanted == "" || wanted == id.User:
		return id.User, nil
	case id.Role.Allows(drover.RoleAdmin):
		return wanted, drover.CheckUser(wanted)
	}
	return "", drover.Errorf(drover.KindForbidden, "this token belongs to %s and cannot submit for %s", id.User, cut(wanted)).
		WithHint("leave user out, or use a token with the role %s", drover.RoleAdmin)
}

type listJobsInput struct {
	Job      int64        `query:"job" minimum:"0" doc:"only the job with this number"`
	Batch    string       `query:"batch" doc:"only jobs of batches with this name"`
	User     string       `query:"user" doc:"only jobs of this user"`
	Mine     bool         `query:"mine" doc:"only jobs of the token's user, unless user is given"`
	State    []string     `query:"state" maxItems:"10" enum:"queued,running,succeeded,failed,cancelled" doc:"only jobs in one of these states"`
	Label    []string     `query:"label,explode" maxItems:"20" doc:"only jobs with this label, as NAME=VALUE; may be repeated"`
	Elements bool         `query:"elements" doc:"list array elements individually"`
	Tried    bool         `query:"tried" doc:"only jobs that have had an attempt"`
	Since    string       `query:"since" doc:"only jobs that are not final, or have ended since this time, such as 2026-11-22T08:00:00Z"`
	Match    string       `query:"match" maxLength:"100" doc:"only jobs with this text in their name or their batch's name; a page may be empty even if more pages follow"`
	Newest   bool         `query:"newest" doc:"newest first; the parameter after then selects earlier jobs"`
	After    drover.JobID `query:"after" doc:"only jobs that come after this one"`
	Limit    int          `query:"limit" minimum:"0" doc:"at most this many; default and maximum: 1000"`
}

type listJobsOutput struct {
	Link string `header:"Link" doc:"the next page, if there is one"`
	Body []drover.Job
}

func (h *Handler) listJobs(ctx context.Context, in *listJobsInput) (*listJobsOutput, error) {
	f := drover.JobFilter{
		Job: in.Job, Batch: in.Batch, User: in.User, Mine: in.Mine, Elements: in.Elements, Tried: in.Tried, Match: in.Match, Newest: in.Newest, After: in.After, Limit: in.Limit,
	}
	if err := parsed(in.Since, &f.Since, parseTime); err != nil {
		return nil, err
	}
	for _, s := range in.State {
		f.States = append(f.States, drover.JobState(s))
	}
	for _, label := range in.Label {
		key, value, ok := strings.Cut(label, "=")
		if !ok {
			return nil, drover.Errorf(drover.KindInvalid, "the label %q has no value", cut(label)).WithHint("write label=NAME=VALUE")
		}
		if other, twice := f.Labels[key]; twice && other != value {
			return nil, drover.Errorf(drover.KindInvalid, "the label %q is given twice, but a job can have only one value for it", cut(key))
		}
		if f.Labels == nil {
			f.Labels = map[string]string{}
		}
		f.Labels[key] = value
	}
	if !h.ownLabels(ctx, &f) {
		return &listJobsOutput{Body: []drover.Job{}}, nil
	}
	page, err := h.cfg.Service.Jobs(ctx, f)
	if err != nil {
		return nil, err
	}
	for i, job := range page.Items {
		page.Items[i] = h.shown(ctx, job)
	}
	return &listJobsOutput{nextLink("/v1/jobs", jobQuery(f), page.Next), array(page.Items)}, nil
}

type jobInput struct {
	ID drover.JobID `path:"id" doc:"a job, such as 17, or an array element, such as 17.3"`
}

func (h *Handler) showJob(ctx context.Context, in *jobInput) (*output[drover.Job], error) {
	job, err := h.cfg.Service.Job(ctx, in.ID)
	return asOutput(h.shown(ctx, job), err)
}

type prioritizeInput struct {
	ID   drover.JobID `path:"id"`
	Body priorityBody
}

type priorityBody struct {
	Priority int `json:"priority" doc:"higher goes first; 0 stops the job until the priority is raised again"`
}

func (h *Handler) prioritize(ctx context.Context, in *prioritizeInput) (*output[drover.Job], error) {
	if err := h.mayChange(ctx, in.ID); err != nil {
		return nil, err
	}
	return asOutput(h.cfg.Service.SetPriority(ctx, in.ID, in.Body.Priority))
}

// changeJobInput has the reason in the body or, for a curl command without one, in the query.
type changeJobInput struct {
	ID     drover.JobID `path:"id"`
	Reason string       `query:"reason" maxLength:"1000" doc:"the reason to record, unless the body has one"`
	Body   *reasonBody
}

type reasonBody struct {
	Reason string `json:"reason,omitempty" maxLength:"1000" doc:"the reason to record"`
}

// or returns the body's reason, or else the query's.
func (b *reasonBody) or(query string) string {
	if b == nil || b.Reason == "" {
		return query
	}
	return b.Reason
}

type setPausedInput struct{ Body *reasonBody }

// setPaused returns the binding that pauses or resumes the queue.
func setPaused(paused bool) binding {
	return bind(func(h *Handler, ctx context.Context, in *setPausedInput) (*output[drover.Status], error) {
		return asStatus(h.cfg.Service.SetPaused(ctx, paused, in.Body.or("")))
	})
}

func (h *Handler) cancel(ctx context.Context, in *changeJobInput) (*output[drover.Job], error) {
	if err := h.mayChange(ctx, in.ID); err != nil {
		return nil, err
	}
	return asOutput(h.cfg.Service.Cancel(ctx, in.ID, in.Body.or(in.Reason)))
}

// retryInput is a changeJobInput that may have a batch with it.
type retryInput struct {
	ID     drover.JobID `path:"id"`
	Reason string       `query:"reason" maxLength:"1000" doc:"the reason to record, unless the body has one"`
	Body   *retryBody
}

func (*retryInput) describe(op *huma.Operation) { op.MaxBodyBytes = maxBatch }

type retryBody struct {
	Reason string     `json:"reason,omitempty" maxLength:"1000" doc:"the reason to record"`
	With   *withBatch `json:"with,omitempty" doc:"a batch in the form of a submission; the job takes its new definition from the batch's job with the same name. Its labels stay; its array or foreach, gang and after must not have changed"`
}

// withBatch is a batch within a body.
type withBatch struct{ json.RawMessage }

// Schema admits anything, since config checks it and reports where it is wrong. The route that submits batches
// describes them.
func (withBatch) Schema(huma.Registry) *huma.Schema { return &huma.Schema{} }

func (h *Handler) retry(ctx context.Context, in *retryInput) (*output[drover.Job], error) {
	if err := h.mayChange(ctx, in.ID); err != nil {
		return nil, err
	}
	if in.Body == nil {
		in.Body = &retryBody{}
	}
	reason := cmp.Or(in.Body.Reason, in.Reason)
	if in.Body.With == nil {
		return asOutput(h.cfg.Service.Retry(ctx, in.ID, reason))
	}
	batch, err := config.ParseSubmission("with", in.Body.With.RawMessage)
	if err != nil {
		return nil, err
	}
	return asOutput(h.cfg.Service.RetryWith(ctx, in.ID, batch, reason))
}

// mayChange lets submitters change their own jobs, and operators everybody's.
func (h *Handler) mayChange(ctx context.Context, id drover.JobID) error {
	who := drover.IdentityOf(ctx)
	if who.Role.Allows(drover.RoleOperate) {
		return nil
	}
	job, err := h.cfg.Service.Job(ctx, id)
	if err != nil {
		return err
	}
	if !owns(who, job) {
		return notOwn(id, who)
	}
	return nil
}
