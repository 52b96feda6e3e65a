package drover

import (
	"context"
	"slices"
)

// Role is what the bearer of a token may do. Each role may do everything that the roles before it may.
type Role string

// The roles, in order.
const (
	RoleView    Role = "view"    // see the fleet and all jobs, but only one's own jobs' logs, outputs, labels and commands
	RoleSubmit  Role = "submit"  // submit jobs, and cancel, retry and prioritize one's own
	RoleOperate Role = "operate" // read everybody's jobs and do the same with them; give instances the operator's verbs
	RoleAdmin   Role = "admin"   // manage tokens; read the controller's memory
)

// Roles lists all roles, the least powerful first.
func Roles() []Role { return []Role{RoleView, RoleSubmit, RoleOperate, RoleAdmin} }

// Allows reports whether the role may do what requires the other one.
func (r Role) Allows(other Role) bool {
	at := slices.Index(Roles(), r)
	return at >= 0 && at >= slices.Index(Roles(), other)
}

// Identity is the caller.
type Identity struct {
	User    string // for an attempt: its job's user
	Role    Role
	Attempt *AttemptID // set for the token of an attempt, which sees its own job and nothing else
}

type identityKey struct{}

// WithIdentity returns a context that contains the caller's identity.
func WithIdentity(ctx context.Context, id Identity) context.Context {
	return context.WithValue(ctx, identityKey{}, id)
}

// IdentityOf returns the caller's identity; the zero Identity if the context has none.
func IdentityOf(ctx context.Context) Identity {
	id, _ := ctx.Value(identityKey{}).(Identity)
	return id
}
