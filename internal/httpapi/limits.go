package httpapi

import (
	"cmp"
	"container/list"
	"math"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"drover"
)

// Limits bound what callers may use. A field that is 0 has its default.
type Limits struct {
	Input      int64 // bytes of one input's contents; 64 GiB
	Streams    int   // open at once for one user, including the user's jobs; 256
	AllStreams int   // open at once for all users; 1024
	Strangers  int   // connections without a valid token; 512
	AtOnce     int   // requests of one user under way at once besides streams, including the user's jobs; 32
	AllAtOnce  int   // the same of all users; 256

	Requests Rate // of one identity; 100 a second, 200 at once
	Attempts Rate // of one attempt; 10 a second, 50 at once
	Tries    Rate // from one address, without a valid token; 5 a second, 20 at once
}

// Rate is how often something may happen.
type Rate struct {
	PerSecond float64
	Burst     int // at once
}

const (
	maxBatch  = 8 << 20 // bytes of a batch; config reads no larger one
	maxSmall  = 64 << 10
	maxHashes = 10_000 // in one query for missing inputs
	maxHashed = 1 << 20
	maxBodies = 1 << 30 // bytes of memory for all batches that are received and read at once
	maxKey    = 255     // bytes of an idempotency key
	maxTable  = 4_096   // identities and addresses whose rate is remembered
)

func (l Limits) orDefault() Limits {
	return Limits{
		Input:      cmp.Or(l.Input, 64<<30),
		Streams:    cmp.Or(l.Streams, 256),
		AllStreams: cmp.Or(l.AllStreams, 1024),
		Strangers:  cmp.Or(l.Strangers, 512),
		AtOnce:     cmp.Or(l.AtOnce, 32),
		AllAtOnce:  cmp.Or(l.AllAtOnce, 256),
		Requests:   cmp.Or(l.Requests, Rate{100, 200}),
		Attempts:   cmp.Or(l.Attempts, Rate{10, 50}),
		Tries:      cmp.Or(l.Tries, Rate{5, 20}),
	}
}

// limiters limit the rates of the most recent callers. A forgotten caller starts with a full allowance.
type limiters struct {
	mu     sync.Mutex
	byKey  map[string]*list.Element
	recent *list.List // of *limiter, the most recent first
}

type limiter struct {
	key string
	*rate.Limiter
}

func newLimiters() *limiters {
	return &limiters{byKey: map[string]*list.Element{}, recent: list.New()}
}

// take counts one call. If that would be one too many, it does not, and returns how long to wait.
func (l *limiters) take(key string, r Rate, now time.Time) time.Duration {
	reserved := l.get(key, r).ReserveN(now, 1)
	wait := reserved.DelayFrom(now)
	if wait > 0 {
		reserved.CancelAt(now)
	}
	return wait
}

func (l *limiters) get(key string, r Rate) *limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e, ok := l.byKey[key]; ok {
		l.recent.MoveToFront(e)
		return e.Value.(*limiter)
	}
	if l.recent.Len() >= maxTable {
		oldest := l.recent.Remove(l.recent.Back()).(*limiter)
		delete(l.byKey, oldest.key)
	}
	lim := &limiter{key, rate.NewLimiter(rate.Limit(r.PerSecond), r.Burst)}
	l.byKey[key] = l.recent.PushFront(lim)
	return lim
}

// streams counts open streams, or requests under way.
type streams struct {
	what     string
	wait     time.Duration // how long a refused caller should wait
	one, all int           // the limits of one user, and of all

	mu    sync.Mutex
	users map[string]int
	total int
}

func newStreams(what string, wait time.Duration, one, all int) *streams {
	return &streams{what: what, wait: wait, one: one, all: all, users: map[string]int{}}
}

// open counts one more stream of a user, until release is called.
func (s *streams) open(user string) (release func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.users[user] >= s.one:
		return nil, tooMany(s.wait, "the limit of %d open %s per user has been reached (including those that the user's jobs opened)", s.one, s.what)
	case s.total >= s.all:
		return nil, tooMany(s.wait, "the limit of %d open %s has been reached", s.all, s.what)
	}
	s.users[user]++
	s.total++
	return sync.OnceFunc(func() { s.closed(user) }), nil
}

func (s *streams) closed(user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total--
	if s.users[user]--; s.users[user] == 0 {
		delete(s.users, user)
	}
}

// room is the memory for bodies that are being received and read.
type room struct {
	mu    sync.Mutex
	left  int64
	users map[string]int64 // bytes per user
}

func newRoom(bytes int64) *room { return &room{left: bytes, users: map[string]int64{}} }

// take reserves room for this many bytes of a user until release is called. A user may have as much as the largest
// batch takes.
func (r *room) take(user string, bytes int64) (release func(), err error) {
	if bytes == 0 {
		return func() {}, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.left < bytes || r.users[user]+bytes > memoryAtMost {
		return nil, tooMany(time.Second, "too many large batches are being read at the moment")
	}
	r.left -= bytes
	r.users[user] += bytes
	return sync.OnceFunc(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.left += bytes
		if r.users[user] -= bytes; r.users[user] == 0 {
			delete(r.users, user)
		}
	}), nil
}

// tooMany returns the error that refuses a call for now.
func tooMany(wait time.Duration, format string, args ...any) error {
	err := drover.Errorf(drover.KindRateLimit, format, args...)
	err.RetryAt = drover.TimeOf(time.Now().Add(wait))
	return err
}

// callerKey names an identity among the limiters.
func callerKey(id drover.Identity) string {
	if id.Attempt != nil {
		return "attempt " + id.Attempt.String()
	}
	return "user " + id.User
}

// addressKey names where a request comes from. For IPv6 that is the network, since a host can have any number of
// addresses.
func addressKey(remote string) string {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return remote
	}
	ip, err := netip.ParseAddr(host)
	if err != nil || ip.Unmap().Is4() {
		return host
	}
	network, err := ip.Prefix(64)
	if err != nil {
		return host
	}
	return network.String()
}

// seconds rounds a time to wait up to whole seconds, at least one.
func seconds(d time.Duration) int { return max(1, int(math.Ceil(d.Seconds()))) }
