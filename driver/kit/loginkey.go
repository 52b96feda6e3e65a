package kit

import (
	"golang.org/x/crypto/ssh"

	"drover"
)

// Fingerprint is that of a key in authorized_keys form, in MD5 as clouds know login keys by.
func Fingerprint(authorized string) (string, error) {
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(authorized))
	if err != nil {
		return "", drover.Errorf(drover.KindInvalid, "read the key that may log in: %v", err)
	}
	return ssh.FingerprintLegacyMD5(key), nil
}
