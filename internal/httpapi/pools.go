package httpapi

import (
	"context"

	"drover"
)

func (h *Handler) pools(ctx context.Context, _ *struct{}) (*output[[]drover.Pool], error) {
	return asList(h.cfg.Service.Pools(ctx))
}

type resizeInput struct {
	Name string `path:"name" maxLength:"100"`
	Body resizeBody
}

type resizeBody struct {
	Size   int    `json:"size" minimum:"0" maximum:"100000" doc:"how many instances it should have, until its configured number changes"`
	Reason string `json:"reason,omitempty" maxLength:"1000" doc:"the reason to record"`
}

func (h *Handler) resizePool(ctx context.Context, in *resizeInput) (*output[drover.Pool], error) {
	return asOutput(h.cfg.Service.ResizePool(ctx, in.Name, in.Body.Size, in.Body.Reason))
}
