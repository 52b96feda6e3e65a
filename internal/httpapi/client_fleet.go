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
	headers, err := c.ask(ctx, call{method: http.MethodGet, path: []string{"instances"}, query: instanceQuery(f)}, &page.Items)
	page.Next = nextOf(headers.Get("Link"))
	return page, err
}

// Instance requests one instance.
func (c *Client) Instance(ctx context.Context, name string) (i drover.Instance, err error) {
	if err := checkName(name, "instance"); err != nil {
		return i, err
	}
	_, err = c.ask(ctx, call{method: http.MethodGet, path: []string{"instances", name}}, &i)
	return i, err
}

// Instruct sends an instance a verb.
func (c *Client) Instruct(ctx context.Context, name string, verb drover.Verb, reason string) (i drover.Instance, err error) {
	if err := checkName(name, "instance"); err != nil {
		return i, err
	}
	_, err = c.ask(ctx, call{method: http.MethodPost, path: []string{"instances", name, string(verb)}, json: reasonBody{reason}}, &i)
	return i, err
}

// checkName refuses an empty name, which would change the path.
func checkName(name, of string) error {
	if name == "" {
		return drover.Errorf(drover.KindNotFound, "the name of the %s is empty", of)
	}
	return nil
}

// Pools requests the pools.
func (c *Client) Pools(ctx context.Context) (pools []drover.Pool, err error) {
	_, err = c.ask(ctx, call{method: http.MethodGet, path: []string{"pools"}}, &pools)
	return pools, err
}

// ResizePool changes a pool's number of instances.
func (c *Client) ResizePool(ctx context.Context, name string, count int, reason string) (p drover.Pool, err error) {
	if err := checkName(name, "pool"); err != nil {
		return p, err
	}
	_, err = c.ask(ctx, call{method: http.MethodPut, path: []string{"pools", name, "size"}, json: resizeBody{count, reason}}, &p)
	return p, err
}

// Offers requests the price list.
func (c *Client) Offers(ctx context.Context, f drover.OfferFilter) (offers []drover.Offer, err error) {
	_, err = c.ask(ctx, call{method: http.MethodGet, path: []string{"offers"}, query: offerQuery(f)}, &offers)
	return offers, err
}

// Summary requests what the fleet did and what it cost.
func (c *Client) Summary(ctx context.Context) (sum drover.Summary, err error) {
	_, err = c.ask(ctx, call{method: http.MethodGet, path: []string{"summary"}}, &sum)
	return sum, err
}

// Status requests a summary of the fleet.
func (c *Client) Status(ctx context.Context) (s drover.Status, err error) {
	_, err = c.ask(ctx, call{method: http.MethodGet, path: []string{"status"}}, &s)
	return s, err
}

// Ready returns an error if the controller is not ready to serve, or cannot be reached.
func (c *Client) Ready(ctx context.Context) error {
	_, err := c.ask(ctx, call{method: http.MethodGet, path: []string{"readyz"}, bare: true}, nil)
	return err
}

// Explain requests why something is in its state. For a job it uses the job's own path, which its attempts may use as
// well.
func (c *Client) Explain(ctx context.Context, subject string) (list []drover.Explanation, err error) {
	q := call{method: http.MethodGet, path: []string{"explain"}, query: url.Values{}}
	put(q.query, "subject", subject)
	if id, err := drover.ParseJobID(subject); err == nil {
		q = call{method: http.MethodGet, path: []string{"jobs", id.String(), "explain"}}
	}
	_, err = c.ask(ctx, q, &list)
	return list, err
}

// Dump copies the controller's dump to w.
func (c *Client) Dump(ctx context.Context, w io.Writer) error {
	body, err := c.read(ctx, call{method: http.MethodGet, path: []string{"dump"}})
	if err != nil {
		return err
	}
	defer body.Close()
	_, err = io.Copy(w, body)
	return err
}

// CreateToken requests a new token.
func (c *Client) CreateToken(ctx context.Context, r drover.TokenRequest) (t drover.NewToken, err error) {
	body := tokenRequest{User: r.User, Role: r.Role, TTL: drover.Seconds(r.TTL)}
	_, err = c.ask(ctx, call{method: http.MethodPost, path: []string{"tokens"}, json: body}, &t)
	return t, err
}

// Tokens requests the list of tokens.
func (c *Client) Tokens(ctx context.Context) (tokens []drover.Token, err error) {
	_, err = c.ask(ctx, call{method: http.MethodGet, path: []string{"tokens"}}, &tokens)
	return tokens, err
}

// RevokeToken ends a token.
func (c *Client) RevokeToken(ctx context.Context, id string) error {
	if err := checkName(id, "token"); err != nil {
		return err
	}
	_, err := c.ask(ctx, call{method: http.MethodDelete, path: []string{"tokens", id}}, nil)
	return err
}
