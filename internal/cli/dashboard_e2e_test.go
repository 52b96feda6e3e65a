//go:build e2e

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"drover"
)

// tab is a page in a real browser.
type tab struct {
	t   *testing.T
	ctx context.Context
	url string
	axe string // the accessibility checker; empty: unavailable

	mu    sync.Mutex
	wrong []string // the browser's complaints; guarded by mu
}

// newTab opens the link that drover open prints in a browser.
func newTab(t *testing.T, p *daemonPlace) *tab {
	t.Helper()
	if _, err := exec.LookPath("chromium"); err != nil {
		t.Skip("chromium is not installed; the package has the same name")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.DisableGPU)
	allocator, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	ctx, end := chromedp.NewContext(allocator)
	t.Cleanup(end)
	b := &tab{t: t, ctx: ctx, url: "http://" + p.address, axe: axe(t)}
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil { // the browser lives as long as the context of its first call
		t.Fatal(err)
	}
	go b.listen()
	link := strings.TrimSpace(p.drover("open", "--print"))
	b.do(chromedp.Navigate(link))
	b.wantText("Drover")
	return b
}

// axe returns axe-core, or nothing if make e2e could not fetch it.
func axe(t *testing.T) string {
	script, err := os.ReadFile("../../bin/axe.min.js")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(script)
}

// listen records the browser's complaints, such as violations of the content security policy.
func (b *tab) listen() {
	for m, err := range chromedp.Console(b.ctx) {
		if err != nil {
			return
		}
		if kind := fmt.Sprint(m.Type); kind == "error" || kind == "warning" {
			b.mu.Lock()
			b.wrong = append(b.wrong, fmt.Sprintf("%s: %s", kind, m.Text))
			b.mu.Unlock()
		}
	}
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 30*time.Second)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

func (b *tab) open(path string) {
	b.t.Helper()
	b.do(chromedp.Navigate(b.url+path), chromedp.WaitReady("#main"))
}

// evaluate runs a script in the page.
func evaluate[T any](b *tab, script string, options ...chromedp.EvaluateOption) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 30*time.Second)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](script, options...))
	if err != nil {
		b.t.Fatal(err)
	}
	return v
}

func (b *tab) text() string {
	return evaluate[string](b, "document.body ? document.body.innerText : ''")
}

// wantText waits until the page shows a text, without reloading it.
func (b *tab) wantText(text string) {
	b.t.Helper()
	eventually(b.t, 30*time.Second, fmt.Sprintf("the page shows %q", text), func() bool {
		return strings.Contains(b.text(), text)
	})
}

// mark marks the page, to detect a reload.
func (b *tab) mark() { evaluate[bool](b, "window.marked = true") }

func (b *tab) wantMarked() {
	b.t.Helper()
	if !evaluate[bool](b, "window.marked === true") {
		b.t.Error("the page was reloaded")
	}
}

// wantAccessible checks that axe-core finds no serious fault.
func (b *tab) wantAccessible(path string) {
	b.t.Helper()
	if b.axe == "" {
		return
	}
	evaluate[any](b, b.axe+";0")
	found := evaluate[string](b, `axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}).then(r => JSON.stringify(
		r.violations.filter(v => v.impact === "serious" || v.impact === "critical").map(v => v.id + ": " + v.help + " at " + v.nodes.map(n => n.html).slice(0, 3).join(" "))))`, chromedp.EvalAwaitPromise)
	var faults []string
	if err := json.Unmarshal([]byte(found), &faults); err != nil {
		b.t.Fatal(err)
	}
	for _, f := range faults {
		b.t.Errorf("%s: %s", path, f)
	}
}

// looks are the ways in which pages are displayed.
var looks = []struct {
	theme string
	width int64
}{{"light", 1360}, {"dark", 1360}, {"light", 390}, {"dark", 390}}

// picture saves screenshots of a page, in both themes and also at the width of a phone, to bin/screenshots.
func (b *tab) picture(path, name string) {
	b.t.Helper()
	for _, look := range looks {
		features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: look.theme}}
		if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features}); err != nil {
			b.t.Fatal(err)
		}
		b.do(chromedp.EmulateViewport(look.width, 900))
		b.open(path)
		b.wantAccessible(path + ", " + look.theme)
		if wide := evaluate[bool](b, "document.documentElement.scrollWidth > document.documentElement.clientWidth"); wide {
			b.t.Errorf("%s is wider than a window of %d", path, look.width)
		}
		if broken := evaluate[bool](b, `[...document.querySelectorAll(".jobs tbody th a")].some(a => { a.textContent = 12345; return a.getClientRects().length > 1 })`); broken {
			b.t.Errorf("%s: the number of a job does not fit on a line in a window of %d", path, look.width)
		}
		png, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
		if err != nil {
			b.t.Fatal(err)
		}
		file := filepath.Join("..", "..", "bin", "screenshots", fmt.Sprintf("%s-%s-%d.png", name, look.theme, look.width))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			b.t.Fatal(err)
		}
		if err := os.WriteFile(file, png, 0o644); err != nil {
			b.t.Fatal(err)
		}
	}
	b.do(chromedp.EmulateViewport(1360, 900))
}

const browsedBatch = `name: browsed
jobs:
  - name: tiles
    array: 16
    command: ["sh", "-c", "sleep 2; echo tile"]
    labels: {project: survey}
  - name: talk
    command: ["sh", "-c", "for i in $(seq 1 1000); do echo line $i; sleep 1; done"]
  - name: poor
    command: ["true"]
    labels: {project: poor}
  - name: bad
    command: ["sh", "-c", "echo oh no >&2; exit 3"]
    labels: {long: a-label-that-is-much-longer-than-a-line-of-a-window-of-the-width-of-a-phone-has-room-for}
`

func TestDashboard(t *testing.T) {
	p := newDaemonPlace(t, "", "budget:\n  - {hourly: 50, monthly: 500}\n  - {label: project=poor, hourly: 0.000001}\npools: {web: {size: 0}}\n")
	p.write("batch.yaml", browsedBatch)
	b := newTab(t, p)

	t.Run("a batch is shown while it runs", func(t *testing.T) {
		b.t = t
		b.open("/")
		b.wantText("No jobs are waiting.")
		b.mark()
		p.drover("submit", "batch.yaml")
		b.wantText("tiles")
		b.wantText("16 succeeded")
		b.wantMarked()
	})
	talk := "2"
	t.Run("a log is followed", func(t *testing.T) {
		b.t = t
		b.open("/jobs/" + talk + "/logs")
		b.wantText("line 2")
		b.wantText("Live")
		b.mark()
		seen := strings.Count(b.text(), "line ")
		b.wantText(fmt.Sprintf("line %d\nline %d", seen+2, seen+3))
		if strings.Count(b.text(), "line 1\n") != 1 {
			t.Errorf("lines appear twice: %s", b.text())
		}
		evaluate[any](b, `{ const old = document.createElement("span"); old.textContent = "x".repeat(2e6); document.getElementById("log").prepend(old); 0 }`)
		eventually(t, 30*time.Second, "the oldest output is dropped", func() bool {
			return evaluate[bool](b, `document.getElementById("log").textContent.length < 1e6`)
		})
		b.wantText(fmt.Sprintf("line %d\n", seen+5))
		b.wantMarked()
	})
	t.Run("a page updates itself however late its scripts arrive", func(t *testing.T) {
		b.t = t
		b.do(chromedp.Navigate(lateScripts(t, b.url)))
		b.mark()
		p.drover("submit", "--name", "late", "--", "true")
		b.wantText("late")
		b.wantMarked()
		b.open("/")
	})
	t.Run("a job blocked by a budget is explained", func(t *testing.T) {
		b.t = t
		b.open("/jobs/3")
		b.wantText("budget")
		b.wantText("project=poor")
		b.open("/")
		b.wantText("label project=poor, hourly")
	})
	t.Run("an instance is drained, with a reason", func(t *testing.T) {
		b.t = t
		name := p.instances()[0].Name
		for _, in := range p.instances() {
			if len(in.Jobs) > 0 {
				name = in.Name
			}
		}
		b.open("/instances")
		b.do(chromedp.Click(`a[href="/instances/`+name+`"]`), chromedp.WaitVisible(`input[name=reason]`))
		b.do(chromedp.SendKeys(`input[name=reason]`, "a new image"), chromedp.Click(`button[value=drain]`))
		b.wantText("drained by")
		b.wantText("a new image")
		b.wantText("Your change was accepted.")
		if at := evaluate[string](b, "location.search"); at != "" {
			t.Errorf("a reload would say so again: %s", at)
		}
		p.waitFor(name, "drains", func(in drover.Instance) bool { return in.Idle == drover.IdleDrain })
	})
	t.Run("a pool's size is changed, with a reason", func(t *testing.T) {
		b.t = t
		b.open("/pools")
		b.do(chromedp.Click(`a[href="/pools/web"]`), chromedp.WaitVisible(`input[name=size]`))
		b.do(chromedp.SetValue(`input[name=size]`, "1"), chromedp.SendKeys(`input[name=reason]`, "a launch"), chromedp.Click(`form.act button`))
		b.wantText("1, 1 ready")
	})
	t.Run("what is typed into a form outlasts a change of the page", func(t *testing.T) {
		b.t = t
		b.open("/pools/web")
		b.do(chromedp.WaitVisible(`input[name=size]`))
		evaluate[string](b, `document.querySelector("input[name=size]").value = "7"`)
		p.drover("pool", "set", "web", "--size", "2", "--reason", "a larger launch")
		b.wantText("2, 2 ready")
		if size := evaluate[string](b, `document.querySelector("input[name=size]").value`); size != "7" {
			t.Errorf("the size is %s", size)
		}
		p.drover("pool", "set", "web", "--size", "1", "--reason", "it was enough")
		b.wantText("1, 1 ready")
	})
	t.Run("pages display correctly in both themes and on a phone", func(t *testing.T) {
		b.t = t
		for name, path := range pagesOf(p, talk) {
			b.picture(path, name)
		}
	})
	t.Run("pages were checked for accessibility", func(t *testing.T) {
		if b.axe == "" {
			t.Skip("they were not: make bin/axe.min.js fetches axe-core from npm")
		}
	})
	t.Run("the browser has no complaints", func(t *testing.T) {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, w := range b.wrong {
			t.Error(w)
		}
	})
	t.Run("a configuration is tried on the recorded workload", func(t *testing.T) {
		b.t = t
		b.open("/whatif")
		b.do(chromedp.SetValue(`textarea`, strings.ReplaceAll(p.configuration("", ""), "max_instances: 4", "max_instances: 1")), chromedp.Click(`.whatif button`))
		b.wantText("edited configuration")
		if text := b.text(); !strings.Contains(text, "what happened") || !strings.Contains(text, "wait, mean") {
			t.Error(text)
		}
		b.wantAccessible("/whatif")
		r := p.run("-c", "drover.yaml", "simulate", "--recorded", "1h")
		if r.code() != 0 || !strings.Contains(r.out.String(), "RECORDED") {
			t.Errorf("%s%s", r.out.String(), r.err.tail())
		}
	})
	t.Run("a job is cancelled, with a reason", func(t *testing.T) {
		b.t = t
		b.open("/jobs/" + talk)
		b.mark()
		b.do(chromedp.SendKeys(`input[name=reason]`, "enough"), chromedp.Click(`#sure`), chromedp.Click(`button[value=cancel]`))
		b.wantText("enough")
		b.open("/jobs/" + talk + "/logs")
		b.wantText("Ended: ")
		p.drover("cancel", "3")
		p.drover("pool", "set", "web", "--size", "0", "--reason", "the launch is over")
	})
	t.Run("pages are readable without JavaScript", func(t *testing.T) {
		withoutScript(t, b, p, talk)
	})
	t.Run("logging out ends the session", func(t *testing.T) {
		b.t = t
		b.open("/")
		b.do(chromedp.Click(`.who button`))
		b.wantText("You are logged out.")
		b.open("/jobs")
		b.wantText("Not logged in")
	})
}

// lateScripts returns the URL of a proxy for the dashboard: the live pages' extension of htmx arrives only once htmx
// itself has run.
func lateScripts(t *testing.T, dashboard string) string {
	target, err := url.Parse(dashboard)
	if err != nil {
		t.Fatal(err)
	}
	ran := make(chan struct{})
	proxy := &httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Header.Del("Accept-Encoding")
		},
		ModifyResponse: func(r *http.Response) error {
			if !strings.Contains(r.Request.URL.Path, "htmx.min.js") {
				return nil
			}
			r.Body = struct {
				io.Reader
				io.Closer
			}{io.MultiReader(r.Body, strings.NewReader("\nsetTimeout(() => fetch('/ran'))")), r.Body}
			r.ContentLength = -1
			r.Header.Del("Content-Length")
			return nil
		},
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/ran":
			close(ran)
			return
		case strings.Contains(r.URL.Path, "hx-sse"):
			<-ran
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// pagesOf returns pages, each with some content.
func pagesOf(p *daemonPlace, job string) map[string]string {
	return map[string]string{
		"overview": "/", "jobs": "/jobs", "array": "/jobs/1", "job": "/jobs/" + job, "log": "/jobs/" + job + "/logs", "failed": "/jobs/4",
		"instances": "/instances?state=any", "pools": "/pools", "pool": "/pools/web", "instance": "/instances/" + p.instances("--all")[0].Name, "offers": "/offers", "costs": "/costs?by=label", "events": "/events", "whatif": "/whatif",
	}
}

// withoutScript reads every page in a browser without scripts.
func withoutScript(t *testing.T, b *tab, p *daemonPlace, job string) {
	b.t = t
	script := func(off bool) {
		if _, err := chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: off}); err != nil {
			t.Fatal(err)
		}
	}
	script(true)
	defer script(false)
	for name, want := range map[string]string{
		"overview": "Why jobs wait", "jobs": "tiles", "array": "1.15", "job": "for i in", "log": "line 1", "failed": "exit code 3", "instances": "small", "offers": "$0.36",
		"costs": "project", "events": "succeeded",
	} {
		b.do(chromedp.Navigate(b.url+pagesOf(p, job)[name]), chromedp.WaitReady("#main"))
		if text, err := chromedp.Run(b.ctx, chromedp.TextContent("#main")); err != nil || !strings.Contains(text, want) {
			t.Errorf("%s: %v: %s", name, err, text)
		}
	}
}

func TestABrowserShowsARun(t *testing.T) {
	p := newPlace(t)
	r := p.start("run", "--ui", "--", "sleep", "5")
	var link string
	eventually(t, 30*time.Second, "a link is printed", func() bool {
		_, after, found := strings.Cut(r.err.String(), "valid for a minute): ")
		link, _, _ = strings.Cut(after, "\n")
		return found && strings.HasSuffix(r.err.String(), "\n")
	})
	jar := &cookies{}
	answer, err := (&http.Client{Jar: jar}).Get(strings.TrimSpace(link))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK || !strings.Contains(string(text), "Why jobs wait") {
		t.Errorf("%s, %v: %s", answer.Status, err, text)
	}
	if code := r.wait(time.Minute); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// cookies stores the cookies of one site.
type cookies struct{ kept []*http.Cookie }

// SetCookies stores them.
func (c *cookies) SetCookies(_ *url.URL, list []*http.Cookie) { c.kept = append(c.kept, list...) }

// Cookies returns them.
func (c *cookies) Cookies(*url.URL) []*http.Cookie { return c.kept }
