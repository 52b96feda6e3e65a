package store

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"drover"
)

func tokenSuite(t *testing.T, openers func(testing.TB) opener) {
	create := func(t *testing.T, s *Store, now drover.Time, r drover.TokenRequest) drover.NewToken {
		t.Helper()
		token, err := s.CreateToken(t.Context(), now, r)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	bearer := func(t *testing.T, s *Store, now drover.Time, secret string) (drover.Token, error) {
		return s.Token(t.Context(), now, drover.NewSecret(secret))
	}

	t.Run("identify their bearers until they expire", func(t *testing.T) {
		s := openers(t)(t)
		token := create(t, s, hour, drover.TokenRequest{User: "ada@lab", Role: drover.RoleSubmit, TTL: time.Hour})
		expires := (2 * hour).Std()
		want := drover.Token{ID: token.ID, User: "ada@lab", Role: drover.RoleSubmit, Created: hour.Std(), Expires: &expires}
		got, err := bearer(t, s, 2*hour-1, token.Secret)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "token", got, want)
		_, err = bearer(t, s, 2*hour, token.Secret)
		if e := drover.AsError(err, drover.KindInternal); e.Kind != drover.KindAuthentication || e.Message != "the token has expired" || e.Hint == "" {
			t.Errorf("error %+v, want an expired token and what to do", e)
		}
		if len(token.ID) != 8 || !strings.HasPrefix(token.Secret, "drover_") || len(token.Secret) != 7+52 {
			t.Errorf("token %+v", token)
		}
	})

	t.Run("are found only by their secrets, which are not stored", func(t *testing.T) {
		s := openers(t)(t)
		token := create(t, s, hour, drover.TokenRequest{User: "ada", Role: drover.RoleAdmin})
		var hash string
		if err := s.read.QueryRow(`SELECT hash FROM tokens`).Scan(&hash); err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{"", token.ID, hash, token.Secret + "x", strings.ToUpper(token.Secret)} {
			if _, err := bearer(t, s, hour, secret); drover.KindOf(err) != drover.KindAuthentication {
				t.Errorf("secret %q: error %v", secret, err)
			}
		}
		if strings.Contains(hash, token.Secret[7:]) {
			t.Errorf("%s is kept as %s", token.Secret, hash)
		}
	})

	t.Run("end when revoked", func(t *testing.T) {
		s := openers(t)(t)
		kept, token := create(t, s, hour, drover.TokenRequest{User: "ada", Role: drover.RoleView}), create(t, s, 2*hour, drover.TokenRequest{User: "bob", Role: drover.RoleView})
		if err := s.RevokeToken(t.Context(), token.ID); err != nil {
			t.Fatal(err)
		}
		if err := s.RevokeToken(t.Context(), token.ID); drover.KindOf(err) != drover.KindNotFound {
			t.Errorf("error %v, want not found", err)
		}
		if _, err := bearer(t, s, 2*hour, token.Secret); drover.KindOf(err) != drover.KindAuthentication {
			t.Errorf("error %v, want an unknown token", err)
		}
		tokens, err := s.Tokens(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "tokens", tokens, []drover.Token{kept.Token})
	})

	t.Run("are listed for thirty days after they expired", func(t *testing.T) {
		s := openers(t)(t)
		create(t, s, hour, drover.TokenRequest{User: "ada", Role: drover.RoleView, TTL: time.Hour})
		for _, c := range []struct {
			now  drover.Time
			want int
		}{{2*hour + 720*hour, 2}, {2*hour + 720*hour + 1, 2}} {
			create(t, s, c.now, drover.TokenRequest{User: "bob", Role: drover.RoleView})
			if tokens, err := s.Tokens(t.Context()); err != nil || len(tokens) != c.want {
				t.Errorf("%v: tokens %v, error %v; want %d", c.now, tokens, err, c.want)
			}
		}
	})

	t.Run("are refused if the request is invalid", func(t *testing.T) {
		s := openers(t)(t)
		for _, r := range []drover.TokenRequest{
			{User: "ada", Role: "root"}, {User: "ada"}, {Role: drover.RoleView}, {User: "a b", Role: drover.RoleView},
			{User: "ada\x1b[2J", Role: drover.RoleView}, {User: strings.Repeat("a", 65), Role: drover.RoleView},
			{User: "ada", Role: drover.RoleView, TTL: -1}, {User: "ada", Role: drover.RoleView, TTL: 1<<63 - 1},
		} {
			if _, err := s.CreateToken(t.Context(), hour, r); drover.KindOf(err) != drover.KindInvalid {
				t.Errorf("%+v: error %v, want invalid", r, err)
			}
		}
		if tokens, err := s.Tokens(t.Context()); err != nil || len(tokens) != 0 {
			t.Errorf("tokens %v, error %v", tokens, err)
		}
	})
}

// BenchmarkToken looks up one of a thousand tokens.
func BenchmarkToken(b *testing.B) {
	s := sqliteOpener(b)(b)
	var secret string
	for i := range 1000 {
		token, err := s.CreateToken(b.Context(), hour, drover.TokenRequest{User: fmt.Sprint("user-", i), Role: drover.RoleView})
		if err != nil {
			b.Fatal(err)
		}
		secret = token.Secret
	}
	for b.Loop() {
		if _, err := s.Token(b.Context(), hour, drover.NewSecret(secret)); err != nil {
			b.Fatal(err)
		}
	}
}
