package drover

import (
	"crypto/sha256"
	"encoding/hex"
)

// Sharing specifies whose jobs may share an instance. The zero Sharing separates nobody.
type Sharing string

// The kinds of sharing.
const (
	ShareUser     Sharing = "user"     // an instance runs the jobs of its first user alone
	ShareEveryone Sharing = "everyone" // it runs everybody's jobs, isolated from each other
)

// Everyones is the mark of an instance that runs everyone's jobs, isolated from each other.
const Everyones = "everyone"

// OwnerMark returns the mark of a user's instances, also used in tags. It does not reveal the name, but anyone who
// guesses the name can verify it.
func OwnerMark(user string) string {
	sum := sha256.Sum256([]byte("drover owner\x00" + user))
	return hex.EncodeToString(sum[:16])
}
