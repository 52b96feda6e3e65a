package remote

import (
	"crypto/hmac"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"strings"

	"drover"
)

// tokenMark separates a token's attempt from its proof. It occurs in neither, and is allowed in a bearer token.
const tokenMark = "~"

// AttemptToken returns the token that an attempt shows to the API: it names the attempt and proves that this fleet made
// it. store is the nonce of the records that number the attempts, so that a token from before they were lost is not
// valid for a later attempt.
func (k FleetKey) AttemptToken(store string, id drover.AttemptID) drover.Secret {
	return drover.NewSecret(id.String() + tokenMark + k.tokenProof(store, id))
}

// IsAttemptToken reports whether a token has the form of an attempt's, valid or not.
func IsAttemptToken(token drover.Secret) bool { return strings.Contains(token.Reveal(), tokenMark) }

// VerifyAttemptToken returns the attempt that a token names, or KindAuthentication. How long it takes reveals nothing
// about the correct proof. The caller must check whether the attempt is alive.
func (k FleetKey) VerifyAttemptToken(store, token string) (drover.AttemptID, error) {
	name, proof, _ := strings.Cut(token, tokenMark)
	id, err := drover.ParseAttemptID(name)
	// Only the form in which we write an id is valid: "017/1" would name the same attempt as "17/1".
	if err != nil || id.String() != name || !hmac.Equal([]byte(proof), []byte(k.tokenProof(store, id))) {
		return drover.AttemptID{}, drover.Errorf(drover.KindAuthentication, "the token does not belong to an attempt of this fleet")
	}
	return id, nil
}

func (k FleetKey) tokenProof(store string, id drover.AttemptID) string {
	return base64.RawURLEncoding.EncodeToString(k.derive("attempt token", store+" "+id.String()))
}

// AttemptProof returns the proof that is sent to an instance with an attempt's Start. The instance returns it in its
// reports about the attempt, to prove that the records with this nonce gave it the attempt. A job there may read the
// proof, but can prove only what is true.
func (k FleetKey) AttemptProof(store, instance string, id drover.AttemptID) string {
	return store + tokenMark + base64.RawURLEncoding.EncodeToString(k.derive("attempt proof", store+" "+instance+" "+id.String()))
}

// AttemptProvedBy returns the nonce of the records that gave the attempt to the instance; empty if the proof is wrong.
func (k FleetKey) AttemptProvedBy(proof, instance string, id drover.AttemptID) (store string) {
	store, _, _ = strings.Cut(proof, tokenMark)
	if !hmac.Equal([]byte(proof), []byte(k.AttemptProof(store, instance, id))) {
		return ""
	}
	return store
}

// JoinToken returns the Kubernetes bootstrap token with which the node on an instance joins its cluster.
func (k FleetKey) JoinToken(instance string) drover.Secret {
	text := strings.ToLower(base32.HexEncoding.EncodeToString(k.derive("join token", instance)))
	return drover.NewSecret(text[:6] + "." + text[6:22])
}

// BootSecret returns the secret that an instance's init command plants and Connect reads back if nothing else proves
// the host key.
func (k FleetKey) BootSecret(instance string) drover.Secret {
	return drover.NewSecret(hex.EncodeToString(k.derive("boot secret", instance)))
}
