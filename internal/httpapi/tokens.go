package httpapi

import (
	"context"
	"net/http"
	"time"

	"drover"

	"github.com/danielgtaylor/huma/v2"
)

type tokensOutput struct{ Body []drover.Token }

func (h *Handler) listTokens(ctx context.Context, _ *struct{}) (*tokensOutput, error) {
	tokens, err := h.cfg.Service.Tokens(ctx)
	if err != nil {
		return nil, err
	}
	return &tokensOutput{array(tokens)}, nil
}

// tokenRequest is a drover.TokenRequest as JSON.
type tokenRequest struct {
	User string         `json:"user" maxLength:"255" doc:"who bears it"`
	Role drover.Role    `json:"role" doc:"view, submit, operate or admin"`
	TTL  drover.Seconds `json:"ttl,omitempty" doc:"how long it is good, in seconds; left out: for ever"`
}

type createTokenInput struct{ Body tokenRequest }

type newTokenOutput struct{ Body drover.NewToken }

func (*newTokenOutput) describe(op *huma.Operation) { op.DefaultStatus = http.StatusCreated }

func (h *Handler) createToken(ctx context.Context, in *createTokenInput) (*newTokenOutput, error) {
	t, err := h.cfg.Service.CreateToken(ctx, drover.TokenRequest{User: in.Body.User, Role: in.Body.Role, TTL: time.Duration(in.Body.TTL)})
	if err != nil {
		return nil, err
	}
	return &newTokenOutput{t}, nil
}

type revokeTokenInput struct {
	ID string `path:"id" maxLength:"255"`
}

func (h *Handler) revokeToken(ctx context.Context, in *revokeTokenInput) (*struct{}, error) {
	return nil, h.cfg.Service.RevokeToken(ctx, in.ID)
}
