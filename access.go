package drover

import (
	"context"
	"slices"
)

// Role is what the bearer of a token may do. Each role may do all that those before it may.
type Role string

// The roles, in order.
const (
	RoleView    Role = "view"    // see the fleet and all jobs, but only one's own jobs' logs, outputs, labels and commands
	RoleSubmit  Role = "submit"  // submit jobs, and cancel, retry and prioritize one's own
	RoleOperate Role = "operate" // read and do the same with everybody's jobs; the verbs for instances
	RoleAdmin   Role = "admin"   // tokens, and what is in the controller's memory
)

// Roles lists all roles, the least powerful first.
func Roles() []Role { return []Role{RoleView, RoleSubmit, RoleOperate, RoleAdmin} }

// Allows reports whether the role may do what requires the other.
func (r Role) Allows(other Role) bool {
	at := slices.Index(Roles(), r)
	return at >= 0 && at >= slices.Index(Roles(), other)
}

// Identity is the caller.
type Identity struct {
	User    string // of an attempt: its job's
	Role    Role
	Attempt *AttemptID // set for the token of an attempt, which sees its own job and nothing else
}

type identityKey struct{}

// WithIdentity returns a context that says who asks.
func WithIdentity(ctx context.Context, id Identity) context.Context {
	return context.WithValue(ctx, identityKey{}, id)
}

// IdentityOf is the caller; the zero Identity if the context does not say.
func IdentityOf(ctx context.Context) Identity {
	id, _ := ctx.Value(identityKey{}).(Identity)
	return id
}
