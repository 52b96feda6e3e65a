package driver

import (
	"strings"

	"drover"
)

// SecretFile is where PlantSecret puts a secret, unless the instance's environment names another file as SecretVariable, as it must where
// instances share their host's files.
const (
	SecretFile     = "/var/lib/drover-secret"
	SecretVariable = "DROVER_SECRET_FILE"
)

// PlantSecret is an init script that leaves a secret to be read back over SSH, and then does what init does, which may be empty. The secret is
// readable by all, since the user that logs in need not be root.
func PlantSecret(secret, init drover.Secret) drover.Secret {
	const shell = "#!/bin/sh\n"
	plant := "(umask 022; echo " + secret.Reveal() + ` >"${` + SecretVariable + ":-" + SecretFile + `}")` + "\n"
	return drover.NewSecret(shell + plant + strings.TrimPrefix(init.Reveal(), shell))
}

// RunFirst is VerifyHostKey's answer when it must see the output of a command on the instance before it can tell.
type RunFirst struct{ Command string }

func (r *RunFirst) Error() string { return "the output of a command on the instance is needed first" }
