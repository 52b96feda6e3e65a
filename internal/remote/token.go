package remote

import (
	"crypto/hmac"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"strings"

	"drover"
)

// tokenMark stands between a token's attempt and its proof. It is in neither, and a bearer token may hold it.
const tokenMark = "~"

// AttemptToken is what an attempt shows to the API: it names the attempt and proves that this fleet made it. Store is
// the nonce of the records that number the attempts, so that a token from before they were lost fits no later attempt.
func (k FleetKey) AttemptToken(store string, id drover.AttemptID) drover.Secret {
	return drover.NewSecret(id.String() + tokenMark + k.tokenProof(store, id))
}

// IsAttemptToken reports whether a token means to be an attempt's, right or wrong.
func IsAttemptToken(token drover.Secret) bool { return strings.Contains(token.Reveal(), tokenMark) }

// VerifyAttemptToken returns the attempt that a token names, or KindAuthentication. How long it takes tells nothing
// about the right proof. Whether the attempt is alive is for the caller to see.
func (k FleetKey) VerifyAttemptToken(store, token string) (drover.AttemptID, error) {
	name, proof, _ := strings.Cut(token, tokenMark)
	id, err := drover.ParseAttemptID(name)
	// Only the form in which we write an id is one: "017/1" names what "17/1" does.
	if err != nil || id.String() != name || !hmac.Equal([]byte(proof), []byte(k.tokenProof(store, id))) {
		return drover.AttemptID{}, drover.Errorf(drover.KindAuthentication, "the token does not belong to an attempt of this fleet")
	}
	return id, nil
}

func (k FleetKey) tokenProof(store string, id drover.AttemptID) string {
	return base64.RawURLEncoding.EncodeToString(k.derive("attempt token", store+" "+id.String()))
}

// AttemptProof is what an attempt's start brings to its instance, and what the instance shows with all it says of the
// attempt: it was given it, and by the records with this nonce. A job there can read it, and so prove no more than is
// true.
func (k FleetKey) AttemptProof(store, instance string, id drover.AttemptID) string {
	return store + tokenMark + base64.RawURLEncoding.EncodeToString(k.derive("attempt proof", store+" "+instance+" "+id.String()))
}

// AttemptProvedBy returns the nonce of the records that gave the attempt to the instance; empty if the proof is not
// right.
func (k FleetKey) AttemptProvedBy(proof, instance string, id drover.AttemptID) (store string) {
	store, _, _ = strings.Cut(proof, tokenMark)
	if !hmac.Equal([]byte(proof), []byte(k.AttemptProof(store, instance, id))) {
		return ""
	}
	return store
}

// JoinToken is what the node on an instance joins its cluster with: a bootstrap token of Kubernetes.
func (k FleetKey) JoinToken(instance string) drover.Secret {
	text := strings.ToLower(base32.HexEncoding.EncodeToString(k.derive("join token", instance)))
	return drover.NewSecret(text[:6] + "." + text[6:22])
}

// BootSecret is what an instance's init command plants and a Connect reads back, where nothing else proves the host
// key.
func (k FleetKey) BootSecret(instance string) drover.Secret {
	return drover.NewSecret(hex.EncodeToString(k.derive("boot secret", instance)))
}
