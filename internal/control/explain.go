package control

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"drover"
	"drover/internal/engine"
)

// Explain explains why something is in its state. A number means a job rather than an instance, even if the job is
// final.
func (c *Controller) Explain(ctx context.Context, subject string) (list []drover.Explanation, err error) {
	ask := func(e *engine.Engine) { list = explain(e, subject) }
	if err := c.Query(ctx, ask); err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return c.explainRecord(ctx, subject)
	}
	if why := c.suspended(); why != nil { // nothing else changes before this does
		list[0].Reasons = slices.Insert(list[0].Reasons, 0, drover.Reason{
			Code: why.Code, Text: "the controller makes no decisions until there is free disk space: " + why.Text, Since: why.Since,
		})
	}
	if id, err := drover.ParseJobID(subject); err == nil && list[0].Subject != id.String() {
		if job, err := c.stored(ctx, id); err == nil {
			return []drover.Explanation{explainJob(job)}, nil
		}
	}
	return list, nil
}

// mostExplained limits the explanations in one answer, for the reader's and the loop's sake.
const mostExplained = 1000

// explain queries the engine, which has everything that is neither final nor gone.
func explain(e *engine.Engine, subject string) []drover.Explanation {
	list, left := e.ExplainSubject(subject, mostExplained)
	if left > 0 {
		list = append(list, drover.Explanation{Subject: "others", Reasons: []drover.Reason{{
			Code: drover.ReasonOther, Text: fmt.Sprintf("and %d more; ask for one of them by name", left),
		}}})
	}
	return list
}

// explainRecord explains what the engine does not have: jobs and instances that are final, gone, or not yet accepted.
func (c *Controller) explainRecord(ctx context.Context, subject string) ([]drover.Explanation, error) {
	if id, err := drover.ParseJobID(subject); err == nil {
		job, err := c.stored(ctx, id)
		if err == nil {
			return []drover.Explanation{explainJob(job)}, nil
		}
		if id.Index >= 0 {
			return nil, err
		}
	}
	name := subject
	for _, prefix := range []string{"pool/", "group/"} {
		if rest, is := strings.CutPrefix(subject, prefix); is {
			if _, err := c.pool(ctx, rest); err != nil {
				return nil, err
			}
			name = rest
		}
	}
	in, err := c.cfg.Store.Instance(ctx, c.clock.now(), subject)
	if err != nil {
		if _, err := c.pool(ctx, name); err == nil {
			return nil, drover.Errorf(drover.KindNotFound, "%q is a pool", subject).WithHint("write pool/%s", name)
		}
		hint := "use the id of a job (drover jobs), or the name of an instance, a cloud or an offering (drover instances, drover offers)"
		if strings.Contains(subject, "/") {
			hint = "drover offers lists what can be rented; CLOUD/ZONE/TYPE/MARKET selects an offering; leave out parts or use patterns to select several"
		}
		return nil, drover.Errorf(drover.KindNotFound, "there is no job, instance, cloud or offering %.80q", subject).WithHint("%s", hint)
	}
	x := drover.Explanation{Subject: in.Name, Reasons: []drover.Reason{}}
	if in.Reason != nil {
		x.Since = in.Reason.Since
		x.Reasons = append(x.Reasons, *in.Reason)
	}
	return []drover.Explanation{x}, nil
}

func explainJob(job drover.Job) drover.Explanation {
	x := drover.Explanation{Subject: job.ID.String(), Waiting: job.State == drover.JobQueued, Reasons: []drover.Reason{}}
	switch {
	case job.Reason != nil:
		x.Reasons = append(x.Reasons, *job.Reason)
	case x.Waiting:
		x.Reasons = append(x.Reasons, drover.Reason{Code: drover.ReasonPlanning, Text: "it was just submitted and will be considered next"})
	case job.State == drover.JobSucceeded:
		x.Reasons = append(x.Reasons, drover.Reason{Code: drover.ReasonExit, Text: "it succeeded"})
	}
	return x
}
