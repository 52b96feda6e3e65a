package azure

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
)

// The versions of the APIs that rest calls.
const (
	networkVersion = "2025-05-01"
	graphVersion   = "2024-04-01"
)

// rest makes the few calls to Microsoft.Network and Azure Resource Graph. They go through the SDK's own pipeline, which signs in and reads
// errors. Microsoft's package for the network would take 50 CPU seconds to compile.
type rest struct {
	*arm.Client
	group string // the path of the resource group
}

// networkInterface is what we read of a Microsoft.Network/networkInterfaces.
type networkInterface struct {
	Name       *string            `json:"name"`
	Tags       map[string]*string `json:"tags"`
	Properties *struct {
		VirtualMachine   *resource `json:"virtualMachine"`
		IPConfigurations []struct {
			Properties struct {
				PrivateIPAddress string   `json:"privateIPAddress"`
				PublicIPAddress  resource `json:"publicIPAddress"`
			} `json:"properties"`
		} `json:"ipConfigurations"`
	} `json:"properties"`
}

// publicAddress is what we read of a Microsoft.Network/publicIPAddresses.
type publicAddress struct {
	resource
	Name       *string            `json:"name"`
	Tags       map[string]*string `json:"tags"`
	Properties *struct {
		IPAddress       string    `json:"ipAddress"`
		IPConfiguration *resource `json:"ipConfiguration"`
	} `json:"properties"`
}

// resource refers to a resource.
type resource struct {
	ID *string `json:"id"`
}

// page is a part of a list.
type page[T any] struct {
	Value    []*T   `json:"value"`
	NextLink string `json:"nextLink"`
}

// pagesOf reads all resources of a kind in the resource group.
func pagesOf[T any](r rest) func(kind string, _ *struct{}) *runtime.Pager[page[T]] {
	return func(kind string, _ *struct{}) *runtime.Pager[page[T]] {
		return runtime.NewPager(runtime.PagingHandler[page[T]]{
			More: func(p page[T]) bool { return p.NextLink != "" },
			Fetcher: func(ctx context.Context, last *page[T]) (p page[T], err error) {
				first := func(ctx context.Context) (*policy.Request, error) {
					return r.request(ctx, http.MethodGet, r.networkPath(kind), networkVersion)
				}
				response, err := runtime.FetcherForNextLink(ctx, r.Pipeline(), nextLink(last), first, nil)
				if err != nil {
					return p, err
				}
				err = runtime.UnmarshalAsJSON(response, &p)
				return p, err
			},
		})
	}
}

func nextLink[T any](last *page[T]) string {
	if last == nil {
		return ""
	}
	return last.NextLink
}

// delete returns once Azure has accepted to delete a resource.
func (r rest) delete(ctx context.Context, kind, name string) error {
	if name == "" {
		return errors.New("a resource without a name cannot be deleted")
	}
	q, err := r.request(ctx, http.MethodDelete, r.networkPath(kind, name), networkVersion)
	if err != nil {
		return err
	}
	_, err = r.do(q, http.StatusOK, http.StatusAccepted, http.StatusNoContent)
	return err
}

// queryPage is a part of the answer to a query of Azure Resource Graph.
type queryPage struct {
	Data            []json.RawMessage `json:"data"`
	SkipToken       string            `json:"$skipToken"`
	ResultTruncated string            `json:"resultTruncated"`
}

// query asks Azure Resource Graph for the part of an answer that begins at a token.
func (r rest) query(ctx context.Context, text, token string) (p queryPage, err error) {
	q, err := r.request(ctx, http.MethodPost, "/providers/Microsoft.ResourceGraph/resources", graphVersion)
	if err != nil {
		return p, err
	}
	options := map[string]string{"resultFormat": "objectArray"}
	if token != "" {
		options["$skipToken"] = token
	}
	if err := runtime.MarshalAsJSON(q, map[string]any{"query": text, "options": options}); err != nil {
		return p, err
	}
	response, err := r.do(q, http.StatusOK)
	if err != nil {
		return p, err
	}
	if err := runtime.UnmarshalAsJSON(response, &p); err != nil {
		return p, err
	}
	if p.SkipToken == "" && p.ResultTruncated == "true" {
		return p, errors.New("the answer was cut short")
	}
	return p, nil
}

func (r rest) networkPath(parts ...string) string {
	path := r.group + "/providers/Microsoft.Network"
	for _, part := range parts {
		path += "/" + url.PathEscape(part)
	}
	return path
}

func (r rest) request(ctx context.Context, method, path, version string) (*policy.Request, error) {
	q, err := runtime.NewRequest(ctx, method, runtime.JoinPaths(r.Endpoint(), path))
	if err != nil {
		return nil, err
	}
	q.Raw().URL.RawQuery = url.Values{"api-version": {version}}.Encode()
	q.Raw().Header.Set("Accept", "application/json")
	return q, nil
}

// do sends a request, and makes an error of any other status than those.
func (r rest) do(q *policy.Request, statuses ...int) (*http.Response, error) {
	response, err := r.Pipeline().Do(q)
	if err == nil && !runtime.HasStatusCode(response, statuses...) {
		err = runtime.NewResponseError(response)
	}
	return response, err
}
