package drover

import (
	"crypto/sha256"
	"encoding/hex"
)

// OwnerMark is the word by which an instance is known to be a user's, in tags too: it tells nobody who that is.
func OwnerMark(user string) string {
	sum := sha256.Sum256([]byte("drover owner\x00" + user))
	return hex.EncodeToString(sum[:16])
}
