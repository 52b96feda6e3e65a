// Package httpapi is the HTTP API: a [Handler] that serves any [drover.Service], and a [Client] that is one.
//
// Both ends stand side by side because they are one thing: whoever holds a drover.Service cannot tell a controller in the same process from
// one behind a Handler and a Client. The suite of this package's tests runs against both.
//
// One table, in routes.go, has every route with what it takes to use it: a role, and whether the token of an attempt will do. A request
// passes, in this order: the name of the host that it asks for, who asks, how often, what that identity may do, and only then the route's own
// function, which hears of who asks by the context.
//
// What the route's function answers is moreover held to whom it is for: see privacy.go.
//
// Invariants: no route but those that the table gives to everybody is served without a token that was found good; an answer that is no
// success is a problem document (RFC 9457) from which the Client makes the very [drover.Error] that the Service returned; nothing that a
// stranger sends is kept without a bound, and nobody holds a connection without making progress.
package httpapi
