package httpapi

import (
	"context"

	"drover"
)

type poolsOutput struct{ Body []drover.Pool }

func (h *Handler) pools(ctx context.Context, _ *struct{}) (*poolsOutput, error) {
	pools, err := h.cfg.Service.Pools(ctx)
	if err != nil {
		return nil, err
	}
	return &poolsOutput{array(pools)}, nil
}

type resizeInput struct {
	Name string `path:"name" maxLength:"100"`
	Body resizeBody
}

type resizeBody struct {
	Size   int    `json:"size" minimum:"0" maximum:"100000" doc:"how many instances it should have, until its configured number changes"`
	Reason string `json:"reason,omitempty" maxLength:"1000" doc:"the reason, for the records"`
}

type poolOutput struct{ Body drover.Pool }

func (h *Handler) resizePool(ctx context.Context, in *resizeInput) (*poolOutput, error) {
	p, err := h.cfg.Service.ResizePool(ctx, in.Name, in.Body.Size, in.Body.Reason)
	if err != nil {
		return nil, err
	}
	return &poolOutput{p}, nil
}
