package httpapi

import (
	"context"

	"drover"
)

type listInstancesInput struct {
	Gone  bool     `query:"gone" doc:"also list instances that are gone"`
	State []string `query:"state" maxItems:"10" enum:"unknown,creating,booting,idle,running,stopped,stopping,gone" doc:"only instances in one of these states"`
	Cloud string   `query:"cloud" doc:"only instances in this cloud"`
	Since string   `query:"since" doc:"only instances that still exist or ceased to exist after this time, such as 2026-11-22T08:00:00Z"`
	After int64    `query:"after" minimum:"0" doc:"only instances with a higher id"`
	Limit int      `query:"limit" minimum:"0" doc:"at most this many; default and maximum: 1000"`

	Newest   bool `query:"newest" doc:"newest first; the parameter after then selects lower ids"`
	Attempts int  `query:"attempts" minimum:"0" maximum:"200" doc:"include this many of each instance's last attempts"`
}

type listInstancesOutput struct {
	Link string `header:"Link" doc:"the next page, if there is one"`
	Body []drover.Instance
}

func (h *Handler) listInstances(ctx context.Context, in *listInstancesInput) (*listInstancesOutput, error) {
	f := drover.InstanceFilter{Gone: in.Gone, Cloud: in.Cloud, After: in.After, Limit: in.Limit, Newest: in.Newest, Attempts: in.Attempts}
	if err := parsed(in.Since, &f.Since, parseTime); err != nil {
		return nil, err
	}
	for _, s := range in.State {
		f.States = append(f.States, drover.InstanceState(s))
	}
	page, err := h.cfg.Service.Instances(ctx, f)
	if err != nil {
		return nil, err
	}
	return &listInstancesOutput{nextLink("/v1/instances", instanceQuery(f), page.Next), array(page.Items)}, nil
}

type instanceInput struct {
	ID string `path:"id" maxLength:"1000" doc:"an instance's id, its name, or the id that its cloud uses"`
}

func (h *Handler) showInstance(ctx context.Context, in *instanceInput) (*output[drover.Instance], error) {
	return asOutput(h.cfg.Service.Instance(ctx, in.ID))
}

type instructInput struct {
	ID     string `path:"id" maxLength:"1000"`
	Reason string `query:"reason" maxLength:"1000" doc:"the reason to record, unless the body has one"`
	Body   *reasonBody
}

// instruct returns the binding of one of the operator's verbs.
func instruct(verb drover.Verb) binding {
	return bind(func(h *Handler, ctx context.Context, in *instructInput) (*output[drover.Instance], error) {
		return asOutput(h.cfg.Service.Instruct(ctx, in.ID, verb, in.Body.or(in.Reason)))
	})
}

type offersInput struct {
	VCPUs  string `query:"vcpus" doc:"only types with at least this many, such as 2 or 0.5"`
	Memory string `query:"memory" doc:"only types with at least this much, such as 4Gi"`
	Disk   string `query:"disk" doc:"only types with at least this much, such as 30Gi"`
	GPUs   int    `query:"gpus" minimum:"0"`
	Arch   string `query:"arch" enum:"amd64,arm64" doc:"only types of this architecture"`
	Cloud  string `query:"cloud" doc:"only types in this cloud"`
	All    bool   `query:"all" doc:"also list what the configuration excludes"`
}

func (h *Handler) offers(ctx context.Context, in *offersInput) (*output[[]drover.Offer], error) {
	f := drover.OfferFilter{Cloud: in.Cloud, All: in.All, Need: drover.Resources{GPUs: in.GPUs, Arch: drover.Arch(in.Arch)}}
	err := parsed(in.VCPUs, &f.Need.CPU, drover.ParseMilliCPU)
	if err == nil {
		err = parsed(in.Memory, &f.Need.Memory, drover.ParseBytes)
	}
	if err == nil {
		err = parsed(in.Disk, &f.Need.Disk, drover.ParseBytes)
	}
	if err != nil {
		return nil, drover.AsError(err, drover.KindInvalid)
	}
	return asList(h.cfg.Service.Offers(ctx, f))
}

// parsed reads a parameter, if it was given.
func parsed[T any](text string, into *T, parse func(string) (T, error)) (err error) {
	if text != "" {
		*into, err = parse(text)
	}
	return err
}
