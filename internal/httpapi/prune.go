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

type pruneOutput struct{ Body drover.Pruned }

func (h *Handler) prune(ctx context.Context, in *pruneInput) (*pruneOutput, error) {
	pruned, err := h.cfg.Service.Prune(ctx, drover.TimeOf(in.Body.Before))
	if err != nil {
		return nil, err
	}
	return &pruneOutput{pruned}, nil
}

// Prune requests the removal of old results.
func (c *Client) Prune(ctx context.Context, before drover.Time) (pruned drover.Pruned, err error) {
	_, err = c.ask(ctx, call{method: http.MethodPost, path: []string{"jobs", "prune"}, json: pruneBody{before.Std()}}, &pruned)
	return pruned, err
}
