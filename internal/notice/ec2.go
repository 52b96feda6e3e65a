package notice

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"drover"
)

// ec2 queries the instance metadata service, version 2, for the spot instance action: the notice, two minutes ahead. It
// does not query the rebalance recommendation, which is not a notice: most instances that get one live on.
type ec2 struct {
	metadata
	token   string
	expires time.Time
}

// NewEC2 returns the source for Amazon EC2 instances, whose metadata server is at the base URL.
func NewEC2(base string) (Source, error) {
	m, err := newMetadata(base)
	return &ec2{metadata: m}, err
}

const (
	ec2TokenPath  = "/latest/api/token"
	ec2ActionPath = "/latest/meta-data/spot/instance-action"
	ec2TokenLife  = 6 * time.Hour
)

// Pause returns usualPause.
func (e *ec2) Pause() time.Duration { return usualPause }

// Notice queries the server once. The server answers 404 until there is a notice.
func (e *ec2) Notice(ctx context.Context) (*drover.Notice, error) {
	if err := e.renew(ctx); err != nil {
		return nil, err
	}
	a, err := e.ask(ctx, askTimeout, "GET", ec2ActionPath, "X-aws-ec2-metadata-token", e.token)
	switch {
	case err != nil:
		return nil, err
	case a.status == 404:
		return nil, nil
	case a.status == 401:
		e.token = ""
		return nil, a.refused(ec2ActionPath)
	case a.status != 200:
		return nil, a.refused(ec2ActionPath)
	}
	return ec2Notice(a.body)
}

func ec2Notice(body []byte) (*drover.Notice, error) {
	var action struct {
		Action string
		Time   time.Time
	}
	if err := json.Unmarshal(body, &action); err != nil {
		return nil, fmt.Errorf("reading the spot instance action: %w", err)
	}
	if action.Action == "" {
		return nil, fmt.Errorf("reading the spot instance action: there is no action in %.100q", body)
	}
	n := &drover.Notice{Cause: fmt.Sprintf("spot interruption (%.40s)", action.Action)}
	if !action.Time.IsZero() {
		n.Deadline = drover.TimeOf(action.Time)
	}
	return n, nil
}

// renew gets a session token, which every request needs, unless the present one is valid for more than a minute.
func (e *ec2) renew(ctx context.Context) error {
	if e.token != "" && time.Until(e.expires) > time.Minute {
		return nil
	}
	a, err := e.ask(ctx, askTimeout, "PUT", ec2TokenPath, "X-aws-ec2-metadata-token-ttl-seconds", fmt.Sprint(int(ec2TokenLife/time.Second)))
	if err != nil {
		return err
	}
	token := string(a.body)
	if a.status != 200 || token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return a.refused(ec2TokenPath)
	}
	e.token, e.expires = token, time.Now().Add(ec2TokenLife)
	return nil
}
