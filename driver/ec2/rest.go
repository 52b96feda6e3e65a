package ec2

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/protocol/restjson"
	signer "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
)

// mostParameter limits an answer of Systems Manager, whose parameters have 8 KiB at most.
const mostParameter = 1 << 20

// parameters is Systems Manager, of which we make one call. Amazon's package for it takes 10 CPU seconds to compile.
type parameters struct{ *api }

// GetParameterInput names a parameter.
type GetParameterInput struct{ Name string }

// GetParameterOutput is a parameter.
type GetParameterOutput struct{ Parameter struct{ Value string } }

// GetParameter reads a parameter. It has the form of the SDK's calls.
func (p parameters) GetParameter(ctx context.Context, in *GetParameterInput, _ ...func(*struct{})) (*GetParameterOutput, error) {
	request, err := p.sign(ctx, in)
	if err != nil {
		return nil, err
	}
	response, err := p.config.HTTPClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body := json.NewDecoder(io.LimitReader(response.Body, mostParameter))
	if response.StatusCode != http.StatusOK {
		refused, err := restjson.GetSmithyGenericAPIError(body, "")
		if err != nil {
			return nil, fmt.Errorf("Systems Manager answered %s", response.Status)
		}
		return nil, refused
	}
	out := &GetParameterOutput{}
	return out, body.Decode(out)
}

// sign makes the signed request.
func (p parameters) sign(ctx context.Context, in *GetParameterInput) (*http.Request, error) {
	address, err := p.endpoint(ctx)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/x-amz-json-1.1")
	request.Header.Set("X-Amz-Target", "AmazonSSM.GetParameter")
	who, err := p.config.Credentials.Retrieve(ctx)
	if err != nil {
		return nil, err
	}
	hash := sha256.Sum256(body)
	now := time.Now().Add(time.Duration(p.skew.Load()))
	return request, signer.NewSigner().SignHTTP(ctx, who, request, hex.EncodeToString(hash[:]), "ssm", p.config.Region, now)
}

// endpoint is where Systems Manager is: beside EC2, in every partition and variant.
func (p parameters) endpoint(ctx context.Context) (string, error) {
	o := p.ec2().Options()
	found, err := o.EndpointResolverV2.ResolveEndpoint(ctx, ec2.EndpointParameters{
		Region: &o.Region, Endpoint: p.config.BaseEndpoint,
		UseFIPS:      aws.Bool(o.EndpointOptions.UseFIPSEndpoint == aws.FIPSEndpointStateEnabled),
		UseDualStack: aws.Bool(o.EndpointOptions.UseDualStackEndpoint == aws.DualStackEndpointStateEnabled),
	})
	if err != nil {
		return "", err
	}
	if name, beside := strings.CutPrefix(found.URI.Host, "ec2"); beside && p.config.BaseEndpoint == nil {
		found.URI.Host = "ssm" + name
	}
	if found.URI.Path == "" {
		found.URI.Path = "/"
	}
	return found.URI.String(), nil
}
