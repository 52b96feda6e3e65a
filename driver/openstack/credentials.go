package openstack

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"encoding/json"
	"os"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/config/clouds"

	"drover"
)

// credentials are who we are, and to whom.
type credentials struct {
	auth      gophercloud.AuthOptions
	endpoints gophercloud.EndpointOpts
	tls       *tls.Config // nil: as this host has it
}

// String tells no secret.
func (c credentials) String() string { return "***" }

// GoString tells none either.
func (c credentials) GoString() string { return "***" }

// variables are the environment's, by the keys that they stand for in the part auth of a cloud in clouds.yaml.
var variables = map[string]string{
	"auth_url": "OS_AUTH_URL", "username": "OS_USERNAME", "user_id": "OS_USER_ID", "password": "OS_PASSWORD", "token": "OS_TOKEN",
	"project_name": "OS_PROJECT_NAME", "project_id": "OS_PROJECT_ID", "domain_name": "OS_DOMAIN_NAME", "domain_id": "OS_DOMAIN_ID",
	"user_domain_name": "OS_USER_DOMAIN_NAME", "user_domain_id": "OS_USER_DOMAIN_ID",
	"project_domain_name": "OS_PROJECT_DOMAIN_NAME", "project_domain_id": "OS_PROJECT_DOMAIN_ID", "trust_id": "OS_TRUST_ID",
	"application_credential_id": "OS_APPLICATION_CREDENTIAL_ID", "application_credential_name": "OS_APPLICATION_CREDENTIAL_NAME",
	"application_credential_secret": "OS_APPLICATION_CREDENTIAL_SECRET",
}

// findCredentials looks where the OpenStack tools look: for the cloud that is configured or that OS_CLOUD names in clouds.yaml and
// secure.yaml, or else in the environment.
func findCredentials(c Config) (credentials, error) {
	options := []clouds.ParseOption{}
	if c.Region != "" {
		options = append(options, clouds.WithRegion(c.Region))
	}
	switch name := cmp.Or(c.Cloud, os.Getenv("OS_CLOUD")); {
	case name != "":
		options = append(options, clouds.WithCloudName(name))
	case os.Getenv("OS_AUTH_URL") != "":
		options = append(options, clouds.WithCloudName("environment"), clouds.WithCloudsYAML(bytes.NewReader(fromEnvironment())))
	default:
		return credentials{}, drover.Errorf(drover.KindInvalid, "no OpenStack credentials: there is no cloud: in the configuration, and neither OS_CLOUD nor OS_AUTH_URL is set").
			WithHint("write cloud: NAME, of an entry of ~/.config/openstack/clouds.yaml")
	}
	auth, endpoints, tls, err := clouds.Parse(options...)
	if err == nil {
		err = complete(auth)
	}
	if err != nil {
		return credentials{}, drover.Errorf(drover.KindInvalid, "read the OpenStack credentials: %v", err).
			WithHint("openstack --os-cloud NAME server list shows whether they are good")
	}
	auth.AllowReauth = auth.TokenID == "" // a token alone cannot be had anew
	return credentials{auth, endpoints, tls}, nil
}

// complete finds out whether there is all that it takes to sign in.
func complete(auth gophercloud.AuthOptions) error {
	scope, err := auth.ToTokenV3ScopeMap()
	if err == nil {
		_, err = auth.ToTokenV3CreateMap(scope)
	}
	return err
}

// fromEnvironment writes the variables as a clouds.yaml, of which JSON is a kind.
func fromEnvironment() []byte {
	auth := map[string]string{}
	for key, variable := range variables {
		if v := os.Getenv(variable); v != "" {
			auth[key] = v
		}
	}
	all := map[string]any{"clouds": map[string]any{"environment": map[string]any{"auth": auth}}}
	text, _ := json.Marshal(all) // strings alone can always be written
	return text
}
