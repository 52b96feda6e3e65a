package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// Hash is the same for clouds that mean the same: see [Config.Hash].
func (c Cloud) Hash() string {
	text, err := json.Marshal(struct {
		Name string
		Common
		Own *node
	}{c.Name, c.Common, c.own})
	if err != nil {
		panic(err) // plain data always marshals
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
