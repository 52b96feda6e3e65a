package web

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"drover"
)

// How long codes and sessions are valid, and how many codes there may be.
const (
	codeTime    = time.Minute
	sessionTime = 12 * time.Hour
	mostCodes   = 10 // of a token at once
)

// sessions logs browsers in. A session is a cookie with a sealed token, so nothing is kept here, and a new controller
// with the same key accepts it. One-time codes are kept until they are used.
type sessions struct {
	seal   cipher.AEAD
	cookie string // its name: browsers share cookies between the ports of a host
	secure atomic.Bool

	mu    sync.Mutex
	codes map[string]offer // guarded by mu
}

// offer is a token that a code is exchanged for before it expires.
type offer struct {
	token drover.Secret
	until time.Time
}

func newSessions(cfg Config) *sessions {
	block, err := aes.NewCipher(cfg.Key[:])
	if err != nil {
		panic(err) // the key has the right length
	}
	seal, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err)
	}
	name := sha256.Sum256([]byte(cfg.Fleet))
	s := &sessions{seal: seal, cookie: "drover-" + hex.EncodeToString(name[:6]), codes: map[string]offer{}}
	s.secure.Store(cfg.Secure)
	return s
}

// offer makes a code for a token.
func (s *sessions) offer(token drover.Secret, now time.Time) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	same := 0
	for code, o := range s.codes {
		if now.After(o.until) {
			delete(s.codes, code)
		} else if o.token.Reveal() == token.Reveal() {
			same++
		}
	}
	if same >= mostCodes {
		return "", drover.Errorf(drover.KindRateLimit, "your token has too many unused browser links: the limit is %d per minute", mostCodes)
	}
	code := rand.Text()
	s.codes[code] = offer{token, now.Add(codeTime)}
	return code, nil
}

// take returns the token of a code, which is then used up.
func (s *sessions) take(code string, now time.Time) (drover.Secret, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, found := s.codes[code]
	delete(s.codes, code)
	return o.token, found && now.Before(o.until)
}

// made returns the cookie of a new session.
func (s *sessions) made(token drover.Secret, now time.Time) *http.Cookie {
	plain := binary.BigEndian.AppendUint64(nil, uint64(now.Add(sessionTime).Unix()))
	sealed := s.seal.Seal(nil, nil, append(plain, token.Reveal()...), []byte(s.cookie))
	return s.cookieOf(base64.RawURLEncoding.EncodeToString(sealed), int(sessionTime/time.Second))
}

func (s *sessions) cookieOf(value string, age int) *http.Cookie {
	return &http.Cookie{Name: s.cookie, Value: value, Path: "/", MaxAge: age, HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: s.secure.Load()}
}

// of returns the token of a request's session, and when the session ends.
func (s *sessions) of(r *http.Request, now time.Time) (token drover.Secret, until time.Time, err error) {
	none := drover.Errorf(drover.KindAuthentication, "you are not logged in, or your session has ended")
	cookie, err := r.Cookie(s.cookie)
	if err != nil {
		return token, until, none
	}
	sealed, err := base64.RawURLEncoding.DecodeString(cookie.Value)
	if err != nil {
		return token, until, none
	}
	plain, err := s.seal.Open(nil, nil, sealed, []byte(s.cookie))
	if err != nil || len(plain) < 8 {
		return token, until, none
	}
	if until = time.Unix(int64(binary.BigEndian.Uint64(plain)), 0); !now.Before(until) {
		return token, until, none
	}
	return drover.NewSecret(string(plain[8:])), until, nil
}

// login logs in a browser that has a code.
func (h *Handler) login(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Sec-Purpose") != "" || r.Method != http.MethodGet { // a prefetch would use the code up
		h.fail(w, nil, drover.Errorf(drover.KindAuthentication, "this link works only once"))
		return
	}
	if from := r.Header.Get("Sec-Fetch-Site"); from == "cross-site" || from == "same-site" { // it could log somebody in as somebody else
		h.fail(w, nil, drover.Errorf(drover.KindAuthentication, "another site opened this link; to log in, paste the link into the address bar"))
		return
	}
	code := r.URL.Query().Get("code")
	if code == "" {
		if _, err := h.enter(r); err == nil {
			http.Redirect(w, r, "/", http.StatusSeeOther)
			return
		}
		h.fail(w, nil, drover.Errorf(drover.KindAuthentication, "you are logged out"))
		return
	}
	token, good := h.sessions.take(code, time.Now())
	if !good {
		h.fail(w, nil, drover.Errorf(drover.KindAuthentication, "this link has already been used, or is more than a minute old"))
		return
	}
	http.SetCookie(w, h.sessions.made(token, time.Now()))
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// logout ends the session in this browser.
func (h *Handler) logout(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, h.sessions.cookieOf("", -1))
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}
