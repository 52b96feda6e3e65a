package web

import (
	"context"
	"fmt"
	"strconv"

	"drover"
)

// offersShown is how many offers a page has, the cheapest.
const offersShown = 200

// offerList is the price list.
type offerList struct {
	VCPUs, Memory, GPUs, Cloud string
	All                        bool
	Offers                     []drover.Offer
	Others                     int // more expensive ones
	Blocked                    int // of all
}

func (h *Handler) offers(ctx context.Context, r *request) (any, error) {
	q := r.URL.Query()
	list := offerList{VCPUs: q.Get("vcpus"), Memory: q.Get("memory"), GPUs: q.Get("gpus"), Cloud: q.Get("cloud"), All: q.Get("all") != ""}
	f := drover.OfferFilter{Cloud: list.Cloud, All: list.All}
	for _, field := range []struct {
		text string
		read func(string) error
	}{
		{list.VCPUs, func(s string) (err error) { f.Need.CPU, err = drover.ParseMilliCPU(s); return err }},
		{list.Memory, func(s string) (err error) { f.Need.Memory, err = drover.ParseBytes(s); return err }},
		{list.GPUs, func(s string) (err error) {
			if f.Need.GPUs, err = strconv.Atoi(s); err != nil || f.Need.GPUs < 0 {
				err = fmt.Errorf("%q is not a number of GPUs", s)
			}
			return err
		}},
	} {
		if field.text == "" {
			continue
		}
		if err := field.read(field.text); err != nil {
			return nil, drover.Errorf(drover.KindInvalid, "%v", err)
		}
	}
	var err error
	if list.Offers, err = r.svc.Offers(ctx, f); err != nil {
		return nil, err
	}
	for _, o := range list.Offers {
		if o.Blocked != nil {
			list.Blocked++
		}
	}
	if more := len(list.Offers) - offersShown; more > 0 {
		list.Offers, list.Others = list.Offers[:offersShown], more
	}
	return list, nil
}
