package record

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"

	"drover/internal/engine"
)

// Digest is a short hash of a decision. Its JSON is canonical, since nothing in a decision is a map.
func Digest(d engine.Decision) (string, error) {
	b, err := json.Marshal(d)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	return base64.RawURLEncoding.EncodeToString(sum[:8]), nil
}
