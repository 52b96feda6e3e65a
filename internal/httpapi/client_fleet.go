package httpapi

import (
	"context"
	"io"
	"net/http"
	"net/url"

	"drover"
)

// Instances requests one page.
func (c *Client) Instances(ctx context.Context, f drover.InstanceFilter) (page drover.Page[drover.Instance], err error) {
	headers, err := c.ask(ctx, call{path: []string{"instances"}, query: instanceQuery(f)}, &page.Items)
	page.Next = nextOf(headers.Get("Link"))
	return page, err
}

// Instance requests one instance.
func (c *Client) Instance(ctx context.Context, name string) (i drover.Instance, err error) {
	if err := checkName(name, "instance"); err != nil {
		return i, err
	}
	return answerTo[drover.Instance](ctx, c, call{path: []string{"instances", name}})
}

// Instruct sends an instance a verb.
func (c *Client) Instruct(ctx context.Context, name string, verb drover.Verb, reason string) (i drover.Instance, err error) {
	if err := checkName(name, "instance"); err != nil {
		return i, err
	}
	return answerTo[drover.Instance](ctx, c, call{method: http.MethodPost, path: []string{"instances", name, string(verb)}, json: reasonBody{reason}})
}

// checkName refuses an empty name, which would change the path.
func checkName(name, of string) error {
	if name == "" {
		return drover.Errorf(drover.KindNotFound, "the name of the %s is empty", of)
	}
	return nil
}

// Pools requests the pools.
func (c *Client) Pools(ctx context.Context) ([]drover.Pool, error) {
	return answerTo[[]drover.Pool](ctx, c, call{path: []string{"pools"}})
}

// ResizePool changes a pool's number of instances.
func (c *Client) ResizePool(ctx context.Context, name string, count int, reason string) (p drover.Pool, err error) {
	if err := checkName(name, "pool"); err != nil {
		return p, err
	}
	return answerTo[drover.Pool](ctx, c, call{method: http.MethodPut, path: []string{"pools", name, "size"}, json: resizeBody{count, reason}})
}

// Offers requests the price list.
func (c *Client) Offers(ctx context.Context, f drover.OfferFilter) ([]drover.Offer, error) {
	return answerTo[[]drover.Offer](ctx, c, call{path: []string{"offers"}, query: offerQuery(f)})
}

// Summary requests what the fleet did and what it cost.
func (c *Client) Summary(ctx context.Context) (drover.Summary, error) {
	return answerTo[drover.Summary](ctx, c, call{path: []string{"summary"}})
}

// Status requests a summary of the fleet.
func (c *Client) Status(ctx context.Context) (drover.Status, error) {
	return answerTo[drover.Status](ctx, c, call{path: []string{"status"}})
}

// Ready returns an error if the controller is not ready to serve, or cannot be reached.
func (c *Client) Ready(ctx context.Context) error {
	_, err := c.ask(ctx, call{path: []string{"readyz"}, bare: true}, nil)
	return err
}

// Explain requests why something is in its state. For a job it uses the job's own path, which its attempts may use as
// well.
func (c *Client) Explain(ctx context.Context, subject string) ([]drover.Explanation, error) {
	q := call{path: []string{"explain"}, query: url.Values{}}
	put(q.query, "subject", subject)
	if id, err := drover.ParseJobID(subject); err == nil {
		q = call{path: []string{"jobs", id.String(), "explain"}}
	}
	return answerTo[[]drover.Explanation](ctx, c, q)
}

// Dump copies the controller's dump to w.
func (c *Client) Dump(ctx context.Context, w io.Writer) error {
	body, err := c.read(ctx, call{path: []string{"dump"}})
	if err != nil {
		return err
	}
	defer body.Close()
	_, err = io.Copy(w, body)
	return err
}

// CreateToken requests a new token.
func (c *Client) CreateToken(ctx context.Context, r drover.TokenRequest) (drover.NewToken, error) {
	body := tokenRequest{User: r.User, Role: r.Role, TTL: drover.Seconds(r.TTL)}
	return answerTo[drover.NewToken](ctx, c, call{method: http.MethodPost, path: []string{"tokens"}, json: body})
}

// Tokens requests the list of tokens.
func (c *Client) Tokens(ctx context.Context) ([]drover.Token, error) {
	return answerTo[[]drover.Token](ctx, c, call{path: []string{"tokens"}})
}

// RevokeToken ends a token.
func (c *Client) RevokeToken(ctx context.Context, id string) error {
	if err := checkName(id, "token"); err != nil {
		return err
	}
	_, err := c.ask(ctx, call{method: http.MethodDelete, path: []string{"tokens", id}}, nil)
	return err
}
