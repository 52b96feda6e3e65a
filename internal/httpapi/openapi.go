package httpapi

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"drover"
	"drover/internal/config"
)

// binding makes a route answer by a method of the Handler.
type binding func(h *Handler, op huma.Operation)

// bind makes huma read requests into an In, write answers from an Out, and describe both.
func bind[In, Out any](serve func(*Handler, context.Context, *In) (*Out, error)) binding {
	return func(h *Handler, op huma.Operation) {
		if in, ok := any(new(In)).(described); ok {
			in.describe(&op)
		}
		if out, ok := any(new(Out)).(described); ok {
			out.describe(&op)
		}
		huma.Register(h.api, op, func(ctx context.Context, in *In) (*Out, error) {
			out, err := serve(h, ctx, in)
			if err != nil {
				return nil, h.problem(err)
			}
			return out, nil
		})
	}
}

// output is an answer in JSON without anything special.
type output[T any] struct{ Body T }

// asOutput answers with what a Service returned.
func asOutput[T any](v T, err error) (*output[T], error) {
	if err != nil {
		return nil, err
	}
	return &output[T]{v}, nil
}

// asList is asOutput for a list.
func asList[T any](items []T, err error) (*output[[]T], error) { return asOutput(array(items), err) }

// described is the type of a request or an answer that describes what its fields do not show.
type described interface{ describe(op *huma.Operation) }

const tokenScheme = "token"

// newAPI makes an API without routes. It has only JSON, no pages, and no links in bodies.
func (h *Handler) newAPI() huma.API {
	schemas := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	schemas.RegisterTypeAlias(reflect.TypeFor[drover.Time](), reflect.TypeFor[timeText]())
	schemas.RegisterTypeAlias(reflect.TypeFor[drover.Seconds](), reflect.TypeFor[secondsNumber]())
	return huma.NewAPI(huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{
				Title: "Drover", Version: h.cfg.Version,
				Description: "A queue of jobs and the cloud instances that it rents for them. Lists are JSON arrays; the Link header points to the next page. Errors are problem documents (RFC 9457).",
			},
			Servers: []*huma.Server{{URL: "/"}},
			Components: &huma.Components{
				Schemas:         schemas,
				SecuritySchemes: map[string]*huma.SecurityScheme{tokenScheme: {Type: "http", Scheme: "bearer"}},
			},
		},
		Formats:       map[string]huma.Format{"application/json": huma.DefaultJSONFormat, "json": huma.DefaultJSONFormat},
		DefaultFormat: "application/json",
		Transformers:  []huma.Transformer{ours},
	}, adapter{h})
}

// timeText describes a drover.Time.
type timeText struct{}

// Schema describes the texts that drover.Time writes.
func (timeText) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Description: "a time (RFC 3339, UTC); 0: never", OneOf: []*huma.Schema{
		{Type: huma.TypeString, Format: "date-time"}, {Type: huma.TypeInteger},
	}}
}

// secondsNumber describes drover.Seconds.
type secondsNumber struct{}

// Schema describes the numbers that drover.Seconds writes.
func (secondsNumber) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeNumber, Description: "seconds"}
}

// operation describes a route, except its request and answer.
func (h *Handler) operation(rt route) huma.Operation {
	refused := &huma.Response{
		Description: "a problem",
		Content:     map[string]*huma.MediaType{"application/problem+json": {Schema: h.schemas().Schema(reflect.TypeFor[problem](), true, "")}},
	}
	op := huma.Operation{
		Method:          rt.method,
		Path:            rt.path,
		OperationID:     strings.ToLower(rt.method) + strings.NewReplacer("/v1", "", "/", "-", "{", "", "}", "", ".", "-").Replace(rt.path),
		Summary:         rt.about,
		MaxBodyBytes:    maxSmall,
		BodyReadTimeout: -1, // upload has the deadline
		Metadata:        map[string]any{"route": rt},
		Responses:       map[string]*huma.Response{"4XX": refused, "default": refused},
		Security:        []map[string][]string{{}}, // none
	}
	if rt.role != "" {
		op.Description = "Needs a token with the role " + string(rt.role) + "."
		if rt.attempt {
			op.Description += " An attempt's token is enough for its own job."
		}
		op.Security = []map[string][]string{{tokenScheme: {}}}
	}
	return op
}

func (h *Handler) schemas() huma.Registry { return h.api.OpenAPI().Components.Schemas }

// describe returns the description of the API, with no errors but our own.
func (h *Handler) describe() []byte {
	delete(h.schemas().Map(), "ErrorModel")
	delete(h.schemas().Map(), "ErrorDetail")
	nullable(h.schemas().Map()["Offer"], "blocked")
	nullable(h.schemas().Map()["Costs"], "others")
	h.schemas().Map()["File"].Properties["path_bytes"] = &huma.Schema{
		Type: huma.TypeString, ContentEncoding: "base64", Description: "the path, if it is not valid UTF-8",
	}
	text, err := json.Marshal(h.api.OpenAPI())
	if err != nil {
		panic(err) // it is made of our own types
	}
	return text
}

// nullable lets a property be null, which huma cannot say of an object.
func nullable(s *huma.Schema, property string) {
	s.Properties[property] = &huma.Schema{OneOf: []*huma.Schema{s.Properties[property], {Type: "null"}}}
}

type openAPIOutput struct {
	ContentType string `header:"Content-Type"`
	Body        []byte
}

func (*openAPIOutput) describe(op *huma.Operation) {
	answers(op, "application/openapi+json", &huma.Schema{})
}

func (h *Handler) openAPI(context.Context, *struct{}) (*openAPIOutput, error) {
	return &openAPIOutput{"application/openapi+json", h.text}, nil
}

// answers sets the content type and the schema of a success.
func answers(op *huma.Operation, contentType string, schema *huma.Schema) {
	op.Responses["200"] = &huma.Response{Description: "OK", Content: map[string]*huma.MediaType{contentType: {Schema: schema}}}
}

// batchSchema returns package config's schema of a batch.
func batchSchema() *huma.Schema {
	text, err := config.SubmissionSchema()
	if err != nil {
		panic(err) // it is made of our own types
	}
	var schema map[string]any
	if err := json.Unmarshal(text, &schema); err != nil {
		panic(err)
	}
	delete(schema, "$schema")
	return &huma.Schema{Extensions: schema}
}

// adapter puts huma's operations on the Handler's mux, each behind its guard.
type adapter struct{ *Handler }

// Handle puts an operation on the mux.
func (a adapter) Handle(op *huma.Operation, serve func(huma.Context)) {
	rt, ok := op.Metadata["route"].(route)
	if !ok {
		panic("httpapi: an operation without a route") // which nothing would guard
	}
	check := checkQuery(op)
	a.mux.Handle(rt.method+" "+rt.path, a.guard(rt, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := check(r.URL.RawQuery); err != nil {
			a.refuse(w, err)
			return
		}
		serve(&exchange{exchanged: humago.NewContext(op, r, w)})
	})))
}

// checkQuery returns a function that refuses a query with parameters that the operation does not have: a misspelled
// filter would select everything. Outside /v1, probes and scrapers may add any parameters.
func checkQuery(op *huma.Operation) func(query string) error {
	if !strings.HasPrefix(op.Path, "/v1/") {
		return func(string) error { return nil }
	}
	var known, repeatable []string
	for _, p := range op.Parameters {
		if p.In == "query" {
			known = append(known, p.Name)
		}
		if p.Explode != nil && *p.Explode {
			repeatable = append(repeatable, p.Name)
		}
	}
	hint := "it takes no parameters"
	if len(known) > 0 {
		hint = "it takes " + strings.Join(known, ", ")
	}
	return func(query string) error {
		given, err := url.ParseQuery(query)
		if err != nil {
			return drover.Errorf(drover.KindInvalid, "the query string is malformed: %v", err).WithHint("%s", hint)
		}
		for _, name := range slices.Sorted(maps.Keys(given)) {
			if !slices.Contains(known, name) {
				return drover.Errorf(drover.KindInvalid, "%s %s has no parameter %q", op.Method, op.Path, cut(name)).WithHint("%s", hint)
			}
			if len(given[name]) > 1 && !slices.Contains(repeatable, name) {
				return drover.Errorf(drover.KindInvalid, "the parameter %q is given %d times", name, len(given[name])).WithHint("give it once, with several values separated by commas if it takes a list")
			}
		}
		return nil
	}
}

// exchange is a request and its answer, as huma sees them.
type exchange struct {
	exchanged
	status int // our problem's, instead of huma's; 0: none
}

// Unwrap returns the wrapped context, from which huma takes the request and the response of net/http.
func (x *exchange) Unwrap() huma.Context { return x.exchanged }

// exchanged is a huma.Context under another name, since huma.Context has a method named Context.
type exchanged huma.Context

// SetStatus begins the answer.
func (x *exchange) SetStatus(status int) {
	if x.status != 0 {
		status = x.status
	}
	x.exchanged.SetStatus(status)
}

// ours replaces huma's problems with our own.
func ours(ctx huma.Context, _ string, v any) (any, error) {
	m, ok := v.(*huma.ErrorModel)
	if !ok {
		return v, nil
	}
	p := ofHuma(m, ctx.Operation().MaxBodyBytes)
	if x, ok := ctx.(*exchange); ok {
		x.status = p.Status
	}
	return p, nil
}
