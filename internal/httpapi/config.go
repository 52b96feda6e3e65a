package httpapi

import (
	"bytes"
	"context"
	"net/http"
	"net/url"

	"github.com/danielgtaylor/huma/v2"

	"drover"
)

// maxConfig is the size limit of a configuration's text.
const maxConfig = 1 << 20

type configInput struct {
	Name    string `query:"name" maxLength:"1000" default:"the file" doc:"the file's name in error messages"`
	RawBody []byte
}

func (*configInput) describe(op *huma.Operation) {
	op.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/yaml": {Schema: &huma.Schema{Type: huma.TypeString}}}}
	op.SkipValidateBody = true // config does, and reports where it fails
	op.MaxBodyBytes = maxConfig
}

func (h *Handler) compareConfig(ctx context.Context, in *configInput) (*output[drover.ConfigDiff], error) {
	if h.cfg.Compare == nil {
		return nil, drover.Errorf(drover.KindUnsupported, "this controller has no configuration file")
	}
	diff, err := h.cfg.Compare(ctx, in.Name, in.RawBody)
	diff.Changes, diff.Restart, diff.Fates = array(diff.Changes), array(diff.Restart), array(diff.Fates)
	return asOutput(diff, err)
}

// CompareConfig requests what would change if the controller's configuration file had another text. Errors call the
// text name.
func (c *Client) CompareConfig(ctx context.Context, name string, text []byte) (drover.ConfigDiff, error) {
	q := call{method: http.MethodPost, path: []string{"config", "diff"}, query: url.Values{"name": {name}}, body: bytes.NewReader(text), kind: "application/yaml"}
	return answerTo[drover.ConfigDiff](ctx, c, q)
}
