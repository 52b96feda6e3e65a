package kubetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// API is a client of an API server.
type API struct {
	URL, Token string
	HTTP       *http.Client
}

// StatusError is an error response.
type StatusError struct {
	Code int
	Text string
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("the API server answered %d: %s", e.Code, e.Text)
}

// IsStatus reports whether an error is a response with this status.
func IsStatus(err error, code int) bool {
	var status *StatusError
	return errors.As(err, &status) && status.Code == code
}

// Do makes a call. It sends in unless that is nil, and decodes the answer into out unless that is nil.
func (a *API) Do(ctx context.Context, method, path string, in, out any) error {
	text, err := json.Marshal(in)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, method, a.URL+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+a.Token)
	r.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		r.Header.Set("Content-Type", "application/merge-patch+json")
	}
	answer, err := a.HTTP.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	switch {
	case err != nil:
		return err
	case answer.StatusCode >= 300:
		return &StatusError{answer.StatusCode, string(body)}
	case out == nil:
		return nil
	}
	return json.Unmarshal(body, out)
}

// Nodes returns all nodes.
func (a *API) Nodes(ctx context.Context) ([]Node, error) {
	var all List[Node]
	err := a.Do(ctx, "GET", "/api/v1/nodes", nil, &all)
	return all.Items, err
}

// Pods returns the pods of the default namespace.
func (a *API) Pods(ctx context.Context) ([]Pod, error) {
	var all List[Pod]
	err := a.Do(ctx, "GET", "/api/v1/namespaces/default/pods", nil, &all)
	return all.Items, err
}

// replicaSets is the path of the ReplicaSets in the default namespace.
const replicaSets = "/apis/apps/v1/namespaces/default/replicasets"

// Create creates a ReplicaSet.
func (a *API) Create(ctx context.Context, r ReplicaSet) error {
	return a.Do(ctx, "POST", replicaSets, r, nil)
}

// Delete deletes a ReplicaSet with its pods.
func (a *API) Delete(ctx context.Context, name string) error {
	return a.Do(ctx, "DELETE", replicaSets+"/"+name, map[string]string{"propagationPolicy": "Background"}, nil)
}
