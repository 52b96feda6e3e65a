package web

import (
	"bytes"
	"context"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"

	"drover"
)

// page is one kind of page.
type page struct {
	name  string // of its template
	title string
	nav   string // the part of the navigation that it belongs to
	live  bool   // its content changes
	load  func(*Handler, context.Context, *request) (any, error)
	made  *template.Template
}

// navigation is the bar at the top of every page.
var navigation = []struct{ Path, Name string }{
	{"/", "Overview"}, {"/jobs", "Jobs"}, {"/instances", "Instances"}, {"/pools", "Pools"}, {"/offers", "Offers"}, {"/costs", "Cost"}, {"/events", "Events"}, {"/whatif", "What if"},
}

// pages returns all pages, by the pattern of their paths.
func pages() map[string]*page {
	return map[string]*page{
		"/{$}":              {name: "overview", title: "Overview", nav: "/", live: true, load: (*Handler).overview},
		"/jobs":             {name: "jobs", title: "Jobs", nav: "/jobs", live: true, load: (*Handler).jobs},
		"/jobs/{id}":        {name: "job", title: "Job", nav: "/jobs", live: true, load: (*Handler).job},
		"/jobs/{id}/logs":   {name: "logs", title: "Log", nav: "/jobs", load: (*Handler).logs},
		"/instances":        {name: "instances", title: "Instances", nav: "/instances", live: true, load: (*Handler).instances},
		"/instances/{name}": {name: "instance", title: "Instance", nav: "/instances", live: true, load: (*Handler).instance},
		"/pools":            {name: "pools", title: "Pools", nav: "/pools", live: true, load: (*Handler).pools},
		"/pools/{name}":     {name: "pool", title: "Pool", nav: "/pools", live: true, load: (*Handler).pool},
		"/offers":           {name: "offers", title: "Offers", nav: "/offers", load: (*Handler).offers},
		"/costs":            {name: "costs", title: "Cost", nav: "/costs", live: true, load: (*Handler).costs},
		"/whatif":           {name: "whatif", title: "What if", nav: "/whatif", load: (*Handler).whatIf},
		"/events":           {name: "events", title: "Events", nav: "/events", live: true, load: (*Handler).events},
	}
}

// parsePages returns the pages with their templates, and two without an address of their own: error and login.
func parsePages(version string) map[string]*page {
	all := pages()
	base := template.Must(template.New("layout.html").Funcs(functions).Funcs(template.FuncMap{"version": func() string { return version }}).
		ParseFS(files, "templates/layout.html", "templates/parts.html"))
	for _, p := range all {
		p.made = template.Must(template.Must(base.Clone()).ParseFS(files, "templates/"+p.name+".html"))
	}
	for name, title := range map[string]string{"error": "Error", "login": "Log in"} {
		all[name] = &page{name: name, title: title, made: template.Must(template.Must(base.Clone()).ParseFS(files, "templates/"+name+".html"))}
	}
	return all
}

// frame is the data for a template.
type frame struct {
	Title   string
	Nav     string
	Menu    any
	Fleet   string
	User    string
	Role    drover.Role
	Operate bool   // the reader may use an operator's forms
	Live    string // the address of the live part; empty if there is none
	Back    string // from an error
	Done    bool   // a form has just changed something
	Data    any
}

func (h *Handler) frame(r *request, p *page, data any) frame {
	f := frame{Title: p.title, Nav: p.nav, Menu: h.menu(r), Fleet: h.cfg.Fleet, Back: "/", Data: data}
	if r == nil {
		return f
	}
	f.User, f.Role = r.who.User, r.who.Role
	f.Operate = r.may(drover.RoleOperate)
	f.Done = r.URL.Query().Has("done")
	if f.Back = r.URL.EscapedPath(); r.Method == http.MethodGet {
		f.Back = above(r.URL)
	}
	if p.live {
		f.Live = r.URL.RequestURI()
	}
	if t, ok := data.(interface{ title() string }); ok {
		f.Title = t.title()
	}
	return f
}

// above returns the address of the page above an address. Above a search is the form for it.
func above(u *url.URL) string {
	page := u.EscapedPath() // so that no %2F makes it another host's address
	if job, ok := strings.CutSuffix(page, "/outputs/file"); ok {
		return job
	}
	if dir := path.Dir(page); dir != "/" || u.RawQuery == "" {
		return dir
	}
	return page
}

// menu returns the part of the navigation that the reader can use.
func (h *Handler) menu(r *request) any {
	if h.cfg.Simulator == nil || r == nil || !r.may(drover.RoleAdmin) {
		return navigation[:len(navigation)-1]
	}
	return navigation
}

// whole writes a complete page.
func (p *page) whole(w io.Writer, f frame) error { return p.write(w, "layout.html", f) }

// write renders a template completely before it writes anything.
func (p *page) write(w io.Writer, name string, f frame) error {
	var made bytes.Buffer
	if err := p.made.ExecuteTemplate(&made, name, f); err != nil {
		return fmt.Errorf("rendering page %s: %w", p.name, err)
	}
	if rw, ok := w.(http.ResponseWriter); ok {
		rw.Header().Set("Content-Type", "text/html; charset=utf-8")
	}
	_, err := made.WriteTo(w)
	return err
}

// moved is the error of a page that has another address.
type moved struct{ to string }

func (m moved) Error() string { return "see " + m.to }

// reading responds with a page or, if the client accepts them, with its live part as server-sent events.
func (h *Handler) reading(p *page) http.HandlerFunc {
	return h.asReader(func(w http.ResponseWriter, r *request) error {
		w.Header().Add("Vary", "Accept")
		if p.live && strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
			return h.stream(w, r, p)
		}
		data, err := p.load(h, r.Context(), r)
		if m, elsewhere := err.(moved); elsewhere {
			http.Redirect(w, r.Request, m.to, http.StatusSeeOther)
			return nil
		}
		if err != nil {
			return err
		}
		return p.whole(w, h.frame(r, p, data))
	})
}
