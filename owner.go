package drover

import (
	"crypto/sha256"
	"encoding/hex"
)

// Sharing says whose jobs may meet on an instance. The zero Sharing keeps nobody from anybody.
type Sharing string

// The kinds of sharing.
const (
	ShareUser     Sharing = "user"     // an instance runs the jobs of its first user alone
	ShareEveryone Sharing = "everyone" // it runs everybody's, each kept apart from all others
)

// Everyones is the mark of an instance that is everyone's: what runs there is kept apart.
const Everyones = "everyone"

// OwnerMark is the word by which an instance is known to be a user's, in tags too: it does not say who that is, and
// whoever guesses the name can check it.
func OwnerMark(user string) string {
	sum := sha256.Sum256([]byte("drover owner\x00" + user))
	return hex.EncodeToString(sum[:16])
}
