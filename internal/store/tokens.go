package store

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"drover"
)

const (
	secretPrefix = "drover_"           // lets people and secret scanners recognize it
	expiredShown = 30 * 24 * time.Hour // how long a token is listed after it expired
)

// CreateToken makes a bearer token. Its secret is only in the result. KindInvalid: the role does not exist, the name
// is not valid, or the time is negative or too long.
func (s *Store) CreateToken(ctx context.Context, now drover.Time, r drover.TokenRequest) (drover.NewToken, error) {
	if err := checkToken(now, r); err != nil {
		return drover.NewToken{}, err
	}
	t := drover.NewToken{
		Token:  drover.Token{ID: strings.ToLower(rand.Text()[:8]), User: r.User, Role: r.Role, Created: now.Std()},
		Secret: newSecret(),
	}
	var expires drover.Time
	if r.TTL > 0 {
		expires = now.Add(r.TTL)
		t.Expires = standard(expires)
	}
	err := s.change(ctx, "creating a token", func(tx *sql.Tx) error {
		if err := execute(ctx, tx, `DELETE FROM tokens WHERE expires <> 0 AND expires < ?`, now.Add(-expiredShown)); err != nil {
			return err
		}
		return execute(ctx, tx, `INSERT INTO tokens (id, user_name, role, hash, created, expires) VALUES (?, ?, ?, ?, ?, ?)`,
			t.ID, t.User, t.Role, hashOf(t.Secret), now, expires)
	})
	if err != nil {
		return drover.NewToken{}, err
	}
	return t, nil
}

func checkToken(now drover.Time, r drover.TokenRequest) error {
	switch {
	case !slices.Contains(drover.Roles(), r.Role):
		return drover.Errorf(drover.KindInvalid, "there is no role %.40q", r.Role).WithHint("the roles are view, submit, operate and admin")
	case r.TTL < 0 || now.Add(r.TTL) < now:
		return drover.Errorf(drover.KindInvalid, "a token cannot be valid for %v", r.TTL).WithHint("leave out the time for a token that does not expire")
	}
	return drover.CheckUser(r.User)
}

// newSecret makes more than 256 random bits.
func newSecret() string { return secretPrefix + strings.ToLower(rand.Text()+rand.Text()) }

// hashOf returns a secret as it is stored. One round of SHA-256 is enough: slow hashes are for passwords, and 256
// random bits cannot be guessed.
func hashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// Tokens lists the tokens that were not revoked, oldest first, including recently expired ones.
func (s *Store) Tokens(ctx context.Context) ([]drover.Token, error) {
	return lookUp(ctx, s, "listing tokens", readToken, `SELECT id, user_name, role, created, expires FROM tokens ORDER BY created, id`)
}

func readToken(row scanner) (t drover.Token, err error) {
	var created, expires drover.Time
	err = row.Scan(&t.ID, &t.User, &t.Role, &created, &expires)
	t.Created, t.Expires = created.Std(), standard(expires)
	return t, err
}

// RevokeToken ends a token at once. KindNotFound.
func (s *Store) RevokeToken(ctx context.Context, id string) error {
	return s.change(ctx, fmt.Sprintf("revoking token %.40q", id), func(tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, `DELETE FROM tokens WHERE id = ?`, id)
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil || n == 1 {
			return err
		}
		return drover.Errorf(drover.KindNotFound, "there is no token %.40q", id).WithHint("drover token list lists all tokens")
	})
}

// Token returns the token with this secret. KindAuthentication: it is unknown or has expired.
//
// It is looked up by its hash, so the time that this takes reveals nothing about any secret.
func (s *Store) Token(ctx context.Context, now drover.Time, secret drover.Secret) (drover.Token, error) {
	t, err := readToken(s.read.QueryRowContext(ctx, `SELECT id, user_name, role, created, expires FROM tokens WHERE hash = ?`, hashOf(secret.Reveal())))
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return drover.Token{}, drover.Errorf(drover.KindAuthentication, "the token is unknown").WithHint("it may have been revoked; an administrator can create another with drover token create")
	case err != nil:
		return drover.Token{}, s.doing(ctx, "looking up a token", err)
	case t.Expires != nil && !now.Std().Before(*t.Expires):
		return drover.Token{}, drover.Errorf(drover.KindAuthentication, "the token has expired").WithHint("an administrator can create another with drover token create")
	}
	return t, nil
}
