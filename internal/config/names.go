package config

import (
	"regexp"

	"drover"
)

var (
	envName     = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	plainName   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)
	likeElement = regexp.MustCompile(`\.[0-9]+$`)
	fleetName   = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]{0,31}$`)
	hash        = regexp.MustCompile(`^[0-9a-f]{64}$`)
	labelKey    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}$`)
)

// CheckFleet returns what is wrong with a fleet's name. The name must fit into names and tags in every cloud.
func CheckFleet(name string) error {
	if fleetName.MatchString(name) {
		return nil
	}
	return drover.Errorf(drover.KindInvalid, "%s is not a valid fleet name", quote(name)).
		WithHint("use 1 to 32 letters, digits and dashes, beginning with a letter")
}

// CheckName returns what is wrong with the name of a batch or a job. The name becomes a folder's name.
func CheckName(name string) error {
	switch {
	case !plainName.MatchString(name):
		return drover.Errorf(drover.KindInvalid, "%s is not a valid name", quote(name)).
			WithHint("use 1 to 63 letters, digits, dots, dashes and underscores, beginning with a letter or digit")
	case likeElement.MatchString(name):
		return drover.Errorf(drover.KindInvalid, "%s is not a valid name: array elements' logs have names like this", quote(name)).
			WithHint("end it with something other than a dot and digits")
	case name == "logs":
		return drover.Errorf(drover.KindInvalid, "the name \"logs\" is reserved: a batch's logs are kept under it")
	}
	return nil
}
