package httpapi

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"drover"
)

func (h *Handler) listTokens(ctx context.Context, _ *struct{}) (*output[[]drover.Token], error) {
	return asList(h.cfg.Service.Tokens(ctx))
}

// tokenRequest is a drover.TokenRequest as JSON.
type tokenRequest struct {
	User string         `json:"user" maxLength:"255" doc:"the token's user"`
	Role drover.Role    `json:"role" doc:"view, submit, operate or admin"`
	TTL  drover.Seconds `json:"ttl,omitempty" doc:"how long it is valid, in seconds; default: forever"`
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

// browserLogin is a link for a browser.
type browserLogin struct {
	Link string `json:"link" doc:"the link, relative to the controller's URL; it works once, within a minute"`
}

type loginInput struct {
	Authorization string `header:"Authorization" hidden:"true"`
}

func (h *Handler) login(_ context.Context, in *loginInput) (*output[browserLogin], error) {
	if h.cfg.Login == nil {
		return nil, drover.Errorf(drover.KindUnsupported, "this controller has no dashboard")
	}
	_, token, _ := strings.Cut(in.Authorization, " ") // the guard has verified it
	link, err := h.cfg.Login(drover.NewSecret(token))
	return asOutput(browserLogin{link}, err)
}

// Login makes a link with which a browser can log in, once and soon, with the client's token.
func (c *Client) Login(ctx context.Context) (link string, err error) {
	var answer browserLogin
	if _, err := c.ask(ctx, call{method: http.MethodPost, path: []string{"login"}}, &answer); err != nil {
		return "", err
	}
	path, err := url.Parse(answer.Link)
	if err != nil {
		return "", c.unreachable(ctx, err)
	}
	return c.base.ResolveReference(path).String(), nil
}
