// Package externalgrpc serves node groups to a Kubernetes cluster's autoscaler, by the protocol of its
// --cloud-provider=externalgrpc.
//
// The model: every call is answered from memory, since an autoscaler makes about five per node in each loop. A request
// for a change is passed to the engine, and answered when the engine has decided. A node is identified only by its
// spec.providerID, never by its name.
//
// The invariants: a client without a certificate of the configured authority gets no answer; a node that is not a
// group's instance is in no group and cannot be deleted; a template is a whole node or an error, never empty.
package externalgrpc

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"drover"
	"drover/internal/externalgrpc/protos"
)

// Groups are the node groups, and the changes that an autoscaler may request.
type Groups interface {
	NodeGroups() (*drover.NodeGroups, <-chan struct{})
	IncreaseGroup(ctx context.Context, group string, delta int) error
	DecreaseGroup(ctx context.Context, group string, delta int) error
	DeleteNodes(ctx context.Context, group string, ids []string) error
}

// Look is what a group's configuration adds to its nodes.
type Look struct {
	Labels   map[string]string
	Taints   []string         // each as KEY=VALUE:EFFECT, without startup taints
	Reserved drover.Resources // what pods cannot have
}

// Server serves an autoscaler.
type Server struct {
	protos.UnimplementedCloudProviderServer
	groups  Groups
	look    func(group string) Look
	options bool
}

// New creates a Server. With options, GetOptions returns the autoscaler's own options; docs/kubernetes.md explains what
// that costs.
func New(groups Groups, look func(group string) Look, options bool) *Server {
	return &Server{groups: groups, look: look, options: options}
}

// Files are the files of mutual TLS.
type Files struct{ Cert, Key, ClientCA string }

// config loads them.
func (f Files) config() (*tls.Config, error) {
	cert, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate for the autoscaler: %w", err)
	}
	pem, err := os.ReadFile(f.ClientCA)
	if err != nil {
		return nil, fmt.Errorf("reading client_ca: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("reading client_ca: %s contains no certificate", f.ClientCA)
	}
	return &tls.Config{Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool, MinVersion: tls.VersionTLS12}, nil
}

// Serve serves on a listener until ctx ends. It reads the files again for each connection, since certificates are renewed;
// if they cannot be used then, those of the start stay in use.
func (s *Server) Serve(ctx context.Context, l net.Listener, files Files) error {
	config, err := files.config()
	if err != nil {
		l.Close()
		return err
	}
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		if renewed, err := files.config(); err == nil {
			return renewed, nil
		}
		return nil, nil
	}
	return serve(ctx, l, config, s)
}

func serve(ctx context.Context, l net.Listener, config *tls.Config, s protos.CloudProviderServer) error {
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(config)))
	protos.RegisterCloudProviderServer(server, s)
	stop := context.AfterFunc(ctx, server.Stop)
	defer stop()
	if err := server.Serve(l); err != nil && ctx.Err() == nil {
		return fmt.Errorf("serving the autoscaler: %w", err)
	}
	return nil
}

// statusOf converts an error to the autoscaler's form.
func statusOf(err error) error {
	told, code := drover.AsError(err, drover.KindInternal), codes.Internal
	switch told.Kind {
	case drover.KindNotFound:
		code = codes.NotFound
	case drover.KindInvalid:
		code = codes.InvalidArgument
	case drover.KindConflict:
		code = codes.FailedPrecondition
	case drover.KindTransient, drover.KindUnreachable:
		code = codes.Unavailable
	}
	return status.Error(code, told.Explained())
}

func (s *Server) now() *drover.NodeGroups {
	now, _ := s.groups.NodeGroups()
	return now
}

// group returns the group with this name, or an error.
func (s *Server) group(id string) (*drover.NodeGroup, error) {
	if g := s.now().Group(id); g != nil {
		return g, nil
	}
	return nil, status.Errorf(codes.NotFound, "there is no node group %.80q", id)
}

func message(g *drover.NodeGroup, debug string) *protos.NodeGroup {
	return &protos.NodeGroup{Id: g.Name, MinSize: int32(g.Min), MaxSize: int32(g.Max), Debug: debug}
}

// debug describes a group to people.
func debug(g *drover.NodeGroup) string {
	states := map[drover.NodeState]int{}
	failed := 0
	for _, n := range g.Nodes {
		if n.Failure != nil {
			failed++
		} else {
			states[n.State]++
		}
	}
	text := fmt.Sprintf("%s: min %d, max %d, target %d; %d creating, %d running, %d deleting, %d failed", g.Name, g.Min, g.Max, g.Target,
		states[drover.NodeCreating], states[drover.NodeRunning], states[drover.NodeDeleting], failed)
	if g.Reason != nil {
		text += "; " + g.Reason.Text
	}
	return text
}

// NodeGroups lists the groups.
func (s *Server) NodeGroups(context.Context, *protos.NodeGroupsRequest) (*protos.NodeGroupsResponse, error) {
	all := &protos.NodeGroupsResponse{}
	groups := s.now().All()
	for i := range groups {
		if !groups[i].Gone {
			all.NodeGroups = append(all.NodeGroups, message(&groups[i], debug(&groups[i])))
		}
	}
	return all, nil
}

// NodeGroupForNode returns a node's group: none, unless its provider id is that of a group's instance. A joined node that
// leaves is in none either: it no longer counts towards its group's target, but the autoscaler would count it there, and
// so request a node too many.
func (s *Server) NodeGroupForNode(_ context.Context, r *protos.NodeGroupForNodeRequest) (*protos.NodeGroupForNodeResponse, error) {
	g, n := s.now().Find(r.GetNode().GetProviderID())
	if g == nil || g.Gone || n.Joined && n.State == drover.NodeDeleting {
		return &protos.NodeGroupForNodeResponse{NodeGroup: &protos.NodeGroup{}}, nil
	}
	return &protos.NodeGroupForNodeResponse{NodeGroup: message(g, "")}, nil
}

// Refresh has nothing to do: no answer is older than the last decision.
func (s *Server) Refresh(context.Context, *protos.RefreshRequest) (*protos.RefreshResponse, error) {
	return &protos.RefreshResponse{}, nil
}

// Cleanup has nothing to do either.
func (s *Server) Cleanup(context.Context, *protos.CleanupRequest) (*protos.CleanupResponse, error) {
	return &protos.CleanupResponse{}, nil
}

// NodeGroupTargetSize returns the group's target.
func (s *Server) NodeGroupTargetSize(_ context.Context, r *protos.NodeGroupTargetSizeRequest) (*protos.NodeGroupTargetSizeResponse, error) {
	g, err := s.group(r.GetId())
	if err != nil {
		return nil, err
	}
	return &protos.NodeGroupTargetSizeResponse{TargetSize: int32(g.Target)}, nil
}

// NodeGroupIncreaseSize raises a group's target, or returns why it does not.
func (s *Server) NodeGroupIncreaseSize(ctx context.Context, r *protos.NodeGroupIncreaseSizeRequest) (*protos.NodeGroupIncreaseSizeResponse, error) {
	if err := s.groups.IncreaseGroup(ctx, r.GetId(), int(r.GetDelta())); err != nil {
		return nil, statusOf(err)
	}
	return &protos.NodeGroupIncreaseSizeResponse{}, nil
}

// NodeGroupDecreaseTargetSize gives up nodes that were requested and are not created yet.
func (s *Server) NodeGroupDecreaseTargetSize(ctx context.Context, r *protos.NodeGroupDecreaseTargetSizeRequest) (*protos.NodeGroupDecreaseTargetSizeResponse, error) {
	if err := s.groups.DecreaseGroup(ctx, r.GetId(), int(r.GetDelta())); err != nil {
		return nil, statusOf(err)
	}
	return &protos.NodeGroupDecreaseTargetSizeResponse{}, nil
}

// NodeGroupDeleteNodes destroys exactly the named nodes. A node that could not be rented has a provider id, too.
func (s *Server) NodeGroupDeleteNodes(ctx context.Context, r *protos.NodeGroupDeleteNodesRequest) (*protos.NodeGroupDeleteNodesResponse, error) {
	var ids []string
	for _, n := range r.GetNodes() {
		ids = append(ids, n.GetProviderID())
	}
	if err := s.groups.DeleteNodes(ctx, r.GetId(), ids); err != nil {
		return nil, statusOf(err)
	}
	return &protos.NodeGroupDeleteNodesResponse{}, nil
}

// The autoscaler's classes of errors.
const (
	outOfResources = 1
	otherError     = 99
)

var states = map[drover.NodeState]protos.InstanceStatus_InstanceState{
	drover.NodeCreating: protos.InstanceStatus_instanceCreating,
	drover.NodeRunning:  protos.InstanceStatus_instanceRunning,
	drover.NodeDeleting: protos.InstanceStatus_instanceDeleting,
}

// NodeGroupNodes lists a group's nodes, including those that could not be rented.
func (s *Server) NodeGroupNodes(_ context.Context, r *protos.NodeGroupNodesRequest) (*protos.NodeGroupNodesResponse, error) {
	g, err := s.group(r.GetId())
	if err != nil {
		return nil, err
	}
	all := &protos.NodeGroupNodesResponse{Instances: make([]*protos.Instance, 0, len(g.Nodes))}
	for _, n := range g.Nodes {
		one := &protos.Instance{Id: n.ID, Status: &protos.InstanceStatus{InstanceState: states[n.State]}}
		if f := n.Failure; f != nil {
			one.Status.ErrorInfo = &protos.InstanceErrorInfo{ErrorCode: f.Code, ErrorMessage: f.Reason.Text, InstanceErrorClass: otherError}
			if f.Exhausted {
				one.Status.ErrorInfo.InstanceErrorClass = outOfResources
			}
		}
		all.Instances = append(all.Instances, one)
	}
	return all, nil
}

// NodeGroupGetOptions returns the autoscaler's own options, if that is configured.
func (s *Server) NodeGroupGetOptions(_ context.Context, r *protos.NodeGroupAutoscalingOptionsRequest) (*protos.NodeGroupAutoscalingOptionsResponse, error) {
	if !s.options {
		return nil, status.Error(codes.Unimplemented, "the autoscaler's own options apply")
	}
	if _, err := s.group(r.GetId()); err != nil {
		return nil, err
	}
	return &protos.NodeGroupAutoscalingOptionsResponse{NodeGroupAutoscalingOptions: r.GetDefaults()}, nil
}
