package kubetest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// adminToken is the token of the cluster's owner.
const adminToken = "admin"

// Cluster is an API server in memory.
type Cluster struct {
	t      testing.TB
	server *httptest.Server

	mu      sync.Mutex
	objects map[string]object // by kind/namespace/name
	version int
	refuses bool // a disruption budget forbids all evictions
}

type object = map[string]any

// NewCluster starts a cluster that ends with the test.
func NewCluster(t testing.TB) *Cluster {
	c := &Cluster{t: t, objects: map[string]object{}}
	c.server = httptest.NewServer(c)
	t.Cleanup(c.server.Close)
	return c
}

// API returns a client with the owner's rights.
func (c *Cluster) API() *API {
	return &API{URL: c.server.URL, Token: adminToken, HTTP: c.server.Client()}
}

// Kubeconfig writes a file with which the owner reaches the cluster.
func (c *Cluster) Kubeconfig(folder string) (path string) {
	path = filepath.Join(folder, "kubeconfig")
	text := fmt.Sprintf("current-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\nclusters: [{name: c, cluster: {server: %s}}]\nusers: [{name: u, user: {token: %s}}]\n", c.server.URL, adminToken)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
	return path
}

// RefuseEvictions makes a disruption budget forbid all evictions, or allow them.
func (c *Cluster) RefuseEvictions(refuse bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refuses = refuse
}

// place is an object's place in the API, from its path.
type place struct{ kind, namespace, name, part string }

func parsePlace(path string) (p place) {
	path = strings.TrimPrefix(strings.TrimPrefix(path, "/api/v1/"), "/apis/apps/v1/")
	parts := strings.Split(path, "/")
	if parts[0] == "namespaces" && len(parts) > 2 {
		p.namespace, parts = parts[1], parts[2:]
	}
	parts = append(parts, "", "")
	p.kind, p.name, p.part = parts[0], parts[1], parts[2]
	return p
}

func (p place) key() string { return p.kind + "/" + p.namespace + "/" + p.name }

// refusal returns an error response.
func refusal(code int, format string, args ...any) error {
	return &StatusError{code, fmt.Sprintf(format, args...)}
}

func (c *Cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has disconnected
	}
	code, text := c.answer(r, body)
	w.WriteHeader(code)
	// A client that has disconnected needs no response.
	_, _ = w.Write(text)
}

// answer encodes the response to a call before its objects change again.
func (c *Cluster) answer(r *http.Request, body []byte) (code int, text []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	code = http.StatusOK
	answer, err := c.call(r, parsePlace(r.URL.Path), body)
	if status, refused := err.(*StatusError); refused {
		code, answer = status.Code, object{"kind": "Status", "message": status.Text, "code": status.Code}
	}
	if text, err = json.Marshal(answer); err != nil {
		panic(err)
	}
	return code, text
}

func (c *Cluster) call(r *http.Request, p place, body []byte) (any, error) {
	if err := c.authorize(r, p); err != nil {
		return nil, err
	}
	var in object
	if len(body) > 0 {
		if err := json.Unmarshal(body, &in); err != nil {
			return nil, refusal(http.StatusBadRequest, "%v", err)
		}
	}
	switch {
	case r.Method == "GET" && p.name == "":
		return c.list(p, r.URL.Query().Get("labelSelector"), r.URL.Query().Get("fieldSelector")), nil
	case r.Method == "POST" && p.name == "":
		return c.create(p, in)
	case c.objects[p.key()] == nil:
		return nil, refusal(http.StatusNotFound, "there is no %s", p.key())
	case r.Method == "GET":
		return c.objects[p.key()], nil
	case r.Method == "PATCH":
		return c.patch(p, in)
	case r.Method == "POST" && p.part == "eviction" && c.refuses:
		return nil, refusal(http.StatusTooManyRequests, "evicting the pod would violate its disruption budget")
	case r.Method == "POST" && p.part == "eviction", r.Method == "DELETE":
		delete(c.objects, p.key())
		c.settle()
		return object{}, nil
	}
	return nil, refusal(http.StatusMethodNotAllowed, "%s %s is not supported", r.Method, r.URL.Path)
}

// authorize allows the owner everything, and a bootstrap token to register a node and set its status.
func (c *Cluster) authorize(r *http.Request, p place) error {
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if token == adminToken {
		return nil
	}
	for _, s := range all[Secret](c, "secrets") {
		expires, err := time.Parse(time.RFC3339, s.Data["expiration"])
		if token == s.Data["token-id"]+"."+s.Data["token-secret"] && err == nil && time.Now().Before(expires) {
			if p.kind == "nodes" && (r.Method == "POST" && p.name == "" || r.Method == "PATCH" && p.part == "status") {
				return nil
			}
			return refusal(http.StatusForbidden, "a bootstrap token may only register nodes")
		}
	}
	return refusal(http.StatusUnauthorized, "the token is unknown")
}

// all returns the objects of a kind, sorted by name.
func all[T any](c *Cluster, kind string) (list []T) {
	for _, key := range sortedKeys(c.objects) {
		if strings.HasPrefix(key, kind+"/") {
			list = append(list, as[T](c.objects[key]))
		}
	}
	return list
}

// as converts an object to a Go value. A value that cannot be encoded never became an object.
func as[T any](o object) (v T) {
	text, err := json.Marshal(o)
	if err == nil {
		err = json.Unmarshal(text, &v)
	}
	if err != nil {
		panic(err)
	}
	return v
}

func (c *Cluster) list(p place, labels, fields string) any {
	found := List[object]{Kind: "List", Items: []object{}}
	node, byNode := strings.CutPrefix(fields, "spec.nodeName=")
	for _, key := range sortedKeys(c.objects) {
		o := c.objects[key]
		if !strings.HasPrefix(key, p.kind+"/"+p.namespace) || !matches(as[struct {
			Meta Meta `json:"metadata"`
		}](o).Meta.Labels, labels) || byNode && as[Pod](o).Spec.Node != node {
			continue
		}
		found.Items = append(found.Items, o)
	}
	return found
}

func (c *Cluster) create(p place, o object) (any, error) {
	meta := part(o, "metadata")
	p.name, _ = meta["name"].(string)
	if c.objects[p.key()] != nil {
		return nil, refusal(http.StatusConflict, "%s already exists", p.key())
	}
	if p.namespace != "" {
		meta["namespace"] = p.namespace
	}
	meta["creationTimestamp"] = time.Now().UTC().Format(time.RFC3339) // in whole seconds, as in a real cluster
	c.keep(p.key(), o)
	return o, nil
}

// keep stores a changed object.
func (c *Cluster) keep(key string, o object) {
	c.version++
	part(o, "metadata")["resourceVersion"] = fmt.Sprint(c.version)
	c.objects[key] = o
	c.settle()
}

func (c *Cluster) patch(p place, change object) (any, error) {
	o := c.objects[p.key()]
	if v := part(change, "metadata")["resourceVersion"]; v != nil && v != part(o, "metadata")["resourceVersion"] {
		return nil, refusal(http.StatusConflict, "%s has changed in the meantime", p.key())
	}
	c.keep(p.key(), merge(o, change))
	return c.objects[p.key()], nil
}

// part returns a field of an object that is itself an object.
func part(o object, name string) object {
	if o[name] == nil {
		o[name] = object{}
	}
	p, _ := o[name].(object)
	return p
}

// merge applies a merge patch to an object.
func merge(o, change object) object {
	merged := as[object](o)
	for key, value := range change {
		inner, is := value.(object)
		switch old, was := merged[key].(object); {
		case value == nil:
			delete(merged, key)
		case is && was:
			merged[key] = merge(old, inner)
		default:
			merged[key] = value
		}
	}
	return merged
}

// settle creates and deletes pods according to their ReplicaSets, and binds those that fit.
func (c *Cluster) settle() {
	c.replicate()
	nodes := all[Node](c, "nodes")
	free := map[string]int{}
	for _, n := range nodes {
		if n.Open() {
			free[n.Meta.Name] = milli(n.Status.Allocatable["cpu"])
		}
	}
	pods := all[Pod](c, "pods")
	for _, p := range pods {
		free[p.Spec.Node] -= p.CPU()
	}
	for _, p := range pods {
		if p.Spec.Node == "" {
			c.bind(p, nodes, free)
		}
	}
}

func (c *Cluster) bind(p Pod, nodes []Node, free map[string]int) {
	o := c.objects["pods/"+p.Meta.Namespace+"/"+p.Meta.Name]
	for _, n := range nodes {
		if n.Open() && free[n.Meta.Name] >= p.CPU() {
			free[n.Meta.Name] -= p.CPU()
			part(o, "spec")["nodeName"] = n.Meta.Name
			o["status"] = object{"phase": "Running"}
			return
		}
	}
	o["status"] = object{"phase": "Pending", "conditions": []any{object{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}}}
}

// replicate keeps the right number of pods in each ReplicaSet, and removes pods whose set or node is gone.
func (c *Cluster) replicate() {
	sets, nodes, have := map[string]ReplicaSet{}, map[string]bool{"": true}, map[string]int{}
	for _, r := range all[ReplicaSet](c, "replicasets") {
		sets[r.Meta.Name] = r
	}
	for _, n := range all[Node](c, "nodes") {
		nodes[n.Meta.Name] = true
	}
	for _, p := range all[Pod](c, "pods") {
		owner := ""
		if len(p.Meta.Owners) > 0 {
			owner = p.Meta.Owners[0].Name
		}
		if _, kept := sets[owner]; owner != "" && !kept || !nodes[p.Spec.Node] {
			delete(c.objects, "pods/"+p.Meta.Namespace+"/"+p.Meta.Name)
			continue
		}
		have[owner]++
	}
	for _, name := range sortedKeys(sets) {
		for range sets[name].Spec.Replicas - have[name] {
			c.version++
			pod := Pod{Meta: sets[name].Spec.Template.Meta, Spec: sets[name].Spec.Template.Spec}
			pod.Meta.Name, pod.Meta.Namespace = fmt.Sprintf("%s-%d", name, c.version), "default"
			pod.Meta.Created = time.Now().UTC().Format(time.RFC3339)
			pod.Meta.Owners = []Owner{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: name}}
			text, err := json.Marshal(pod)
			if err != nil {
				panic(err)
			}
			var o object
			if err := json.Unmarshal(text, &o); err != nil {
				panic(err)
			}
			c.objects["pods/default/"+pod.Meta.Name] = o
		}
	}
}
