package httpapi

import (
	"context"
	"net/http"
	"time"

	"drover"
)

type pruneInput struct{ Body pruneBody }

type pruneBody struct {
	Before time.Time `json:"before" doc:"results of jobs that ended before this time are deleted"`
}

func (h *Handler) prune(ctx context.Context, in *pruneInput) (*output[drover.Pruned], error) {
	before, err := parseTime(in.Body.Before.Format(time.RFC3339Nano)) // a drover.Time holds few centuries
	if err != nil {
		return nil, err
	}
	return asOutput(h.cfg.Service.Prune(ctx, before))
}

// Prune requests the removal of old results.
func (c *Client) Prune(ctx context.Context, before drover.Time) (drover.Pruned, error) {
	return answerTo[drover.Pruned](ctx, c, call{method: http.MethodPost, path: []string{"jobs", "prune"}, json: pruneBody{before.Std()}})
}
