package openstack

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/gophercloud/gophercloud/v2/openstack/config/clouds"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/images"
	"github.com/gophercloud/gophercloud/v2/openstack/utils"
	"github.com/gophercloud/gophercloud/v2/pagination"

	"drover"
	"drover/driver/kit"
)

// The microversions of Nova that matter here, without "2.". See "REST API Version History" in Nova's documentation. The
// driver never requests a newer one, so that an answer never has an untested meaning.
const (
	baseVersion    = 1
	networksByWord = 37 // networks can be auto and none, and are required
	tagsAtCreation = 52
	volumesByType  = 67 // a volume created with a server can have a type
	downCells      = 69 // a list includes, without details, the servers whose part of the cloud does not answer
	wantedVersion  = downCells
)

// extendsInUse is the first microversion of Cinder that extends a volume in use: see "REST API Version History" in
// Cinder's documentation.
const extendsInUse = "3.42"

// api makes all calls to OpenStack. It signs in with the first call.
type api struct {
	who  credentials
	http http.Client
	open kit.Cache[*session] // one entry, with an empty name
}

// session is a sign-in and the services that it found.
type session struct {
	compute *gophercloud.ServiceClient
	image   *gophercloud.ServiceClient
	version int // of Nova, without "2."
}

// callTime limits one call; Nova itself waits a minute for an unreachable part of the cloud.
const callTime = 100 * time.Second

// connect makes the client. It makes no call.
func connect(who credentials, network http.RoundTripper, gate kit.Gate) *api {
	if network == nil {
		own := http.DefaultTransport.(*http.Transport).Clone()
		own.TLSClientConfig = who.tls
		own.MaxIdleConnsPerHost = 16
		network = own
	}
	return &api{who: who, http: http.Client{
		Transport: &kit.Transport{Gate: gate, Next: network, Name: callName, Keys: func(call string) []string { return contains[call] }},
		Timeout:   callTime, CheckRedirect: kit.NoRedirect,
	}}
}

// contains has the keys of which a successful answer to a call must contain one.
var contains = map[string][]string{
	"POST auth/tokens": {"token"}, "GET servers/detail": {"servers"}, "GET servers": {"server"}, "POST servers": {"server"}, "PUT servers/metadata": {"metadata"},
	"GET flavors/detail": {"flavors"}, "GET os-availability-zone": {"availabilityZoneInfo"}, "GET images": {"images", "id"}, "GET volumes": {"volume"},
}

// session signs in once. If that fails, the next call tries again. A 404 response to it says nothing about the object of
// the call.
func (a *api) session(ctx context.Context) (*session, error) {
	s, err := a.open.Get(ctx, "", func() (*session, error) { return a.signIn(ctx) })
	return s, errs.Aside(err)
}

func (a *api) signIn(ctx context.Context) (*session, error) {
	provider, err := openstack.NewClient(a.who.auth.IdentityEndpoint)
	if err != nil {
		return nil, err
	}
	provider.HTTPClient = a.http
	if err := openstack.Authenticate(ctx, provider, a.who.auth); err != nil {
		return nil, fmt.Errorf("sign in: %w", err)
	}
	if err := oneRegion(provider, a.who.endpoints); err != nil {
		return nil, err
	}
	s := &session{}
	if s.compute, err = openstack.NewComputeV2(provider, a.who.endpoints); err != nil {
		return nil, fmt.Errorf("find the compute service: %w", err)
	}
	if s.image, err = openstack.NewImageV2(provider, a.who.endpoints); err != nil {
		return nil, fmt.Errorf("find the image service: %w", err)
	}
	if strings.HasSuffix(s.image.Endpoint, "/v2/") {
		s.image.ResourceBase = s.image.Endpoint // otherwise the client adds a second version
	}
	if s.version, err = microversion(ctx, s.compute); err != nil {
		return nil, fmt.Errorf("read the compute service's version: %w", err)
	}
	s.compute.Microversion = fmt.Sprint("2.", s.version)
	return s, nil
}

// oneRegion checks that there is only one compute service to choose from: another choice after a restart would make all
// instances seem to be gone.
func oneRegion(provider *gophercloud.ProviderClient, of gophercloud.EndpointOpts) error {
	signedIn, _ := provider.GetAuthResult().(interface {
		ExtractServiceCatalog() (*tokens.ServiceCatalog, error)
	})
	if signedIn == nil || of.Region != "" {
		return nil
	}
	catalog, err := signedIn.ExtractServiceCatalog()
	if err != nil {
		return fmt.Errorf("read the service catalog: %w", err)
	}
	of.ApplyDefaults("compute")
	var regions []string // in the catalog's order, whose first the library would use
	for _, service := range catalog.Entries {
		for _, e := range service.Endpoints {
			if slices.Contains(of.Types(), service.Type) && e.Interface == string(of.Availability) {
				if region := cmp.Or(e.RegionID, e.Region); !slices.Contains(regions, region) {
					regions = append(regions, region)
				}
			}
		}
	}
	if len(regions) < 2 {
		return nil
	}
	return drover.Errorf(drover.KindInvalid, "the compute service has several regions: %s", strings.Join(regions, ", ")).
		WithHint("choose one; earlier versions of Drover used region: %s", regions[0])
}

// with makes a call in a session.
func with[T any](ctx context.Context, a *api, call func(*session) (T, error)) (answer T, err error) {
	s, err := a.session(ctx)
	if err != nil {
		return answer, err
	}
	return call(s)
}

// done makes a call without a result.
func (a *api) done(ctx context.Context, call func(*session) error) error {
	_, err := with(ctx, a, func(s *session) (struct{}, error) { return struct{}{}, call(s) })
	return err
}

// microversion returns the newest microversion that both sides support.
func microversion(ctx context.Context, compute *gophercloud.ServiceClient) (int, error) {
	var answer struct {
		Version struct {
			ID     string `json:"id"`
			Newest string `json:"version"`
		} `json:"version"`
	}
	root, err := utils.BaseVersionedEndpoint(compute.Endpoint)
	if err != nil {
		return 0, err
	}
	if _, err := compute.ProviderClient.Request(ctx, http.MethodGet, root, &gophercloud.RequestOpts{JSONResponse: &answer}); err != nil {
		return 0, err
	}
	if answer.Version.ID == "" {
		return 0, drover.Errorf(drover.KindTransient, "the response contains no version")
	}
	_, newest, err := utils.ParseMicroversion(answer.Version.Newest)
	if err != nil {
		return baseVersion, nil // a Nova without microversions
	}
	return max(baseVersion, min(newest, wantedVersion)), nil
}

// collect reads all pages. If one fails, it returns nothing else.
func collect[T any](ctx context.Context, pager pagination.Pager, extract func(pagination.Page) ([]T, error)) (all []T, err error) {
	pages := 0
	err = pager.EachPage(ctx, func(_ context.Context, page pagination.Page) (bool, error) {
		if pages++; pages > kit.MaxPages {
			return false, kit.ErrEndless
		}
		some, err := extract(page)
		all = append(all, some...)
		return err == nil, err
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// listServers lists the project's servers with a name; without a name it lists all, without a query.
func (a *api) listServers(ctx context.Context, name string) (found []servers.Server, version int, err error) {
	s, err := a.session(ctx)
	if err != nil {
		return nil, 0, err
	}
	var query servers.ListOptsBuilder
	if name != "" {
		query = servers.ListOpts{Name: "^" + name + "$"}
	}
	pager := servers.List(s.compute, query).WithPageCreator(func(r pagination.PageResult) pagination.Page {
		return serverPage{servers.ServerPage{LinkedPageBase: pagination.LinkedPageBase{PageResult: r}}}
	})
	found, err = collect(ctx, pager, func(p pagination.Page) ([]servers.Server, error) {
		return servers.ExtractServers(p.(serverPage).ServerPage)
	})
	return found, s.version, err
}

// serverPage is a page of a list of servers. The client's own page ends the list if it is empty, even if it has a link to
// the next one.
type serverPage struct{ servers.ServerPage }

// IsEmpty never ends the list.
func (serverPage) IsEmpty() (bool, error) { return false, nil }

func (a *api) getServer(ctx context.Context, id string) (*servers.Server, error) {
	return with(ctx, a, func(s *session) (*servers.Server, error) {
		found, err := servers.Get(ctx, s.compute, id).Extract()
		if err == nil && found.ID == "" {
			err = errNoServer
		}
		return found, ofNova(err)
	})
}

// errNoServer is the error for an answer that should contain a server. After a create call, the server may exist.
var errNoServer = drover.Errorf(drover.KindTransient, "the response contains no server")

// createServer creates a server with the options that build returns for Nova's version, and returns its id.
func (a *api) createServer(ctx context.Context, build func(version int) (servers.CreateOptsBuilder, error)) (id string, err error) {
	return with(ctx, a, func(s *session) (string, error) {
		request, err := build(s.version)
		if err != nil {
			return "", err
		}
		made, err := servers.Create(ctx, s.compute, request, nil).Extract()
		if err == nil && made.ID == "" {
			err = errNoServer
		}
		return kit.Value(made).ID, err
	})
}

// listImages lists the images with a name; without a name it lists all.
func (a *api) listImages(ctx context.Context, name string) ([]images.Image, error) {
	return with(ctx, a, func(s *session) ([]images.Image, error) {
		return collect(ctx, images.List(s.image, images.ListOpts{Name: name, Status: images.ImageStatusActive}), images.ExtractImages)
	})
}

func (a *api) getImage(ctx context.Context, id string) (*images.Image, error) {
	return with(ctx, a, func(s *session) (*images.Image, error) { return images.Get(ctx, s.image, id).Extract() })
}

// volumes returns a client for Cinder, with the first version that extends volumes in use. It makes no call.
func (a *api) volumes(ctx context.Context) (*gophercloud.ServiceClient, error) {
	s, err := a.session(ctx)
	if err != nil {
		return nil, err
	}
	client, err := openstack.NewBlockStorageV3(s.compute.ProviderClient, a.who.endpoints)
	if err != nil {
		return nil, fmt.Errorf("find the block storage service: %w", err)
	}
	client.Microversion = extendsInUse
	return client, nil
}

// versionPart matches the beginning of a path, up to the API's version.
var versionPart = regexp.MustCompile(`^.*/v[0-9.]+(/|$)`)

// callName returns a call's name without ids, such as "PUT servers/metadata".
func callName(r *http.Request) string {
	var parts []string
	for part := range strings.SplitSeq(versionPart.ReplaceAllString(r.URL.Path, ""), "/") {
		if part != "" && !uuid.MatchString(part) {
			parts = append(parts, part)
		}
	}
	return fmt.Sprintf("%s %s", r.Method, strings.Join(parts, "/"))
}

// credentials are who signs in and where.
type credentials struct {
	auth      gophercloud.AuthOptions
	endpoints gophercloud.EndpointOpts
	tls       *tls.Config // nil: this host's default
}

// String hides all secrets.
func (c credentials) String() string { return "***" }

// GoString hides all secrets.
func (c credentials) GoString() string { return "***" }

// variables are environment variables, by the keys that they replace in the auth section of a cloud in clouds.yaml.
var variables = map[string]string{
	"auth_url": "OS_AUTH_URL", "username": "OS_USERNAME", "user_id": "OS_USER_ID", "password": "OS_PASSWORD", "token": "OS_TOKEN",
	"project_name": "OS_PROJECT_NAME", "project_id": "OS_PROJECT_ID", "domain_name": "OS_DOMAIN_NAME", "domain_id": "OS_DOMAIN_ID",
	"user_domain_name": "OS_USER_DOMAIN_NAME", "user_domain_id": "OS_USER_DOMAIN_ID",
	"project_domain_name": "OS_PROJECT_DOMAIN_NAME", "project_domain_id": "OS_PROJECT_DOMAIN_ID", "trust_id": "OS_TRUST_ID",
	"application_credential_id": "OS_APPLICATION_CREDENTIAL_ID", "application_credential_name": "OS_APPLICATION_CREDENTIAL_NAME",
	"application_credential_secret": "OS_APPLICATION_CREDENTIAL_SECRET",
}

// findCredentials searches where the OpenStack tools do: in clouds.yaml and secure.yaml for the configured cloud or the
// one that OS_CLOUD names, otherwise in the environment.
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
		return credentials{}, drover.Errorf(drover.KindInvalid, "no OpenStack credentials: the cloud's configuration has no cloud: key, and neither OS_CLOUD nor OS_AUTH_URL is set").
			WithHint("write cloud: NAME, the name of an entry in ~/.config/openstack/clouds.yaml")
	}
	auth, endpoints, tls, err := clouds.Parse(options...)
	if err == nil {
		err = complete(auth)
	}
	if err != nil {
		return credentials{}, drover.Errorf(drover.KindInvalid, "read the OpenStack credentials: %v", err).
			WithHint("openstack --os-cloud NAME server list shows whether they work")
	}
	auth.AllowReauth = auth.TokenID == "" // a token alone cannot be renewed
	return credentials{auth, endpoints, tls}, nil
}

// complete checks that nothing needed to sign in is missing.
func complete(auth gophercloud.AuthOptions) error {
	scope, err := auth.ToTokenV3ScopeMap()
	if err == nil {
		_, err = auth.ToTokenV3CreateMap(scope)
	}
	return err
}

// fromEnvironment writes the variables as a clouds.yaml; JSON is valid YAML.
func fromEnvironment() []byte {
	auth := map[string]string{}
	for key, variable := range variables {
		if v := os.Getenv(variable); v != "" {
			auth[key] = v
		}
	}
	all := map[string]any{"clouds": map[string]any{"environment": map[string]any{"auth": auth}}}
	text, _ := json.Marshal(all) // strings can always be encoded
	return text
}
