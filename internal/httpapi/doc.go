// Package httpapi is the HTTP API: a [Handler] that serves any [drover.Service], and a [Client] that is one.
//
// Both ends are in one package because they belong together: the holder of a drover.Service cannot tell a controller in
// the same process from one behind a Handler and a Client. The suite of this package's tests runs against both.
//
// One table, in routes.go, lists every route and what it requires: a role, and whether an attempt's token is enough. A
// request passes these checks in order: the host name it names, the caller's identity, the caller's rate, and what the
// caller may do. Only then does the route's own function run. It gets the caller from the context.
//
// The function's answer is then reduced to what the caller may see: see privacy.go.
//
// Invariants: only routes that the table opens to everybody are served without a valid token; every failure is a
// problem document (RFC 9457), from which the Client rebuilds the [drover.Error] that the Service returned; nothing
// that a stranger sends is stored without a bound, and no connection stays open without progress.
package httpapi
