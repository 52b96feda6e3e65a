package web

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"drover"
)

// WhatIf requests what an edited configuration would have done with what was recorded, or with an uploaded trace.
type WhatIf struct {
	Configuration string
	Since         time.Time
	TraceName     string    // empty: what was recorded since Since
	Trace         io.Reader // of that name
}

// Comparison is the result, compared with what really happened and with the current configuration.
type Comparison struct {
	Columns []string
	Rows    []ComparisonRow
	Panels  []Panel
	Notes   []string
}

// ComparisonRow is one figure, for each column.
type ComparisonRow struct {
	Name   string
	Values []string
}

// Panel is a chart over time, with a line for each column.
type Panel struct {
	Title string
	Lines [][]Point
}

// Point is a value at a time.
type Point struct {
	At    time.Time
	Value float64
}

// Simulator tries configurations.
type Simulator interface {
	// Configuration returns the text of the one in use.
	Configuration() (string, error)

	// WhatIf simulates, with what was recorded from the service. KindInvalid: the configuration or the trace is
	// invalid.
	WhatIf(ctx context.Context, svc drover.Service, ask WhatIf) (*Comparison, error)
}

// Limits of trying a configuration.
const (
	tryTime   = 2 * time.Minute
	maxUpload = 64 << 20
	maxConfig = 1 << 20
)

// whatIfPage is the form and the result.
type whatIfPage struct {
	Text    string
	Since   string
	Sinces  []string
	Result  *Comparison
	Charts  []drawing
	Problem *drover.Error
	Took    time.Duration
}

var tries = []string{"24h", "7d", "30d"}

// whatIf shows the form with the configuration in use.
func (h *Handler) whatIf(_ context.Context, r *request) (any, error) {
	if err := r.needs(drover.RoleAdmin); err != nil {
		return nil, err
	}
	text, err := h.cfg.Simulator.Configuration()
	return whatIfPage{Text: text, Since: tries[0], Sinces: tries}, err
}

// needs refuses a reader without a role.
func (r *request) needs(role drover.Role) error {
	if r.may(role) {
		return nil
	}
	return drover.Errorf(drover.KindForbidden, "this needs the role %s, but you have %s", role, r.who.Role)
}

// tryIt runs the simulation from the form, one at a time, and shows the result below the form.
func (h *Handler) tryIt(w http.ResponseWriter, r *request) error {
	if err := r.needs(drover.RoleAdmin); err != nil {
		return err
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxUpload)
	if err := r.ParseMultipartForm(maxConfig); err != nil {
		return drover.Errorf(drover.KindInvalid, "the form cannot be read: %v", err)
	}
	defer r.MultipartForm.RemoveAll()
	p := whatIfPage{Text: strings.ReplaceAll(r.PostFormValue("configuration"), "\r\n", "\n"), Since: r.PostFormValue("since"), Sinces: tries}
	began := time.Now()
	result, err := h.compare(r, p)
	if p.Took = time.Since(began).Round(10 * time.Millisecond); err != nil {
		p.Problem = drover.AsError(err, drover.KindInvalid)
		w.WriteHeader(p.Problem.Kind.HTTPStatus())
	} else {
		p.Result, p.Charts = result, drawings(result.Panels)
	}
	page := h.pages["/whatif"]
	return page.whole(w, h.frame(r, page, p))
}

func (h *Handler) compare(r *request, p whatIfPage) (*Comparison, error) {
	select {
	case h.trying <- struct{}{}:
		defer func() { <-h.trying }()
	default:
		return nil, drover.Errorf(drover.KindRateLimit, "another configuration is being tried right now").WithHint("try again when it is finished")
	}
	ctx, cancel := context.WithTimeout(r.Context(), tryTime)
	defer cancel()
	since, _ := stretchOf(p.Since, r.now)
	ask := WhatIf{Configuration: p.Text, Since: since}
	if file, head, err := r.FormFile("trace"); err == nil {
		defer file.Close()
		ask.Trace, ask.TraceName = file, drover.Sanitize(head.Filename)
	}
	return h.cfg.Simulator.WhatIf(ctx, r.svc, ask)
}

// drawing is a panel drawn in a box of a thousand by a hundred.
type drawing struct {
	Title string
	Top   string
	From  string
	To    string
	Lines []string // of points
}

func drawings(panels []Panel) (all []drawing) {
	for _, p := range panels {
		all = append(all, draw(p))
	}
	return all
}

func draw(p Panel) drawing {
	var a axis
	top := 0.0
	for _, line := range p.Lines {
		for _, at := range line {
			if a.from.IsZero() || at.At.Before(a.from) {
				a.from = at.At
			}
			if at.At.After(a.to) {
				a.to = at.At
			}
			top = max(top, at.Value)
		}
	}
	d := drawing{Title: p.Title, Top: fmt.Sprintf("%.4g", top), From: a.from.UTC().Format("Jan 2 15:04"), To: a.to.UTC().Format("Jan 2 15:04")}
	for _, line := range p.Lines {
		var b strings.Builder
		for _, at := range line {
			fmt.Fprintf(&b, "%.1f,%.1f ", a.place(at.At), 99-98*at.Value/max(top, 1e-9))
		}
		d.Lines = append(d.Lines, b.String())
	}
	return d
}
