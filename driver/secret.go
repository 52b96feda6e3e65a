package driver

import (
	"strings"

	"drover"
)

// SecretFile is where PlantSecret puts a secret, unless the instance's environment names another file as
// SecretVariable. The environment must name one where instances share their host's files.
const (
	SecretFile     = "/var/lib/drover-secret"
	SecretVariable = "DROVER_SECRET_FILE"
)

// PlantSecret returns an init script that writes a secret, to be read back over SSH, and then runs init, which may be
// empty. Everybody on the instance can read the secret, since the login user need not be root.
func PlantSecret(secret, init drover.Secret) drover.Secret {
	const shell = "#!/bin/sh\n"
	plant := "(umask 022; echo " + secret.Reveal() + ` >"${` + SecretVariable + ":-" + SecretFile + `}")` + "\n"
	return drover.NewSecret(shell + plant + strings.TrimPrefix(init.Reveal(), shell))
}

// RunFirst is VerifyHostKey's answer when it needs the output of a command on the instance first.
type RunFirst struct{ Command string }

func (r *RunFirst) Error() string {
	return "verifying the host key needs the output of a command on the instance"
}
