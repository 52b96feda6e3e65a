package web

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"drover"
)

// everyPage has addresses of every page.
var everyPage = []string{
	"/", "/jobs", "/jobs?q=x&state=failed&user=u&before=9", "/jobs/17", "/jobs/17?state=failed", "/jobs/17.3", "/jobs/17.3/logs", "/jobs/17.3/logs?stream=stderr&attempt=1",
	"/instances", "/instances?span=24h", "/instances/x", "/pools", "/pools/x", "/pools/group", "/offers", "/offers?vcpus=2&memory=4Gi&all=1", "/costs", "/costs?by=label&label=a&since=30d", "/costs?since=month",
	"/events", "/events?level=warn", "/nothing",
}

// TestHostileText puts markup in every field and checks every page.
func TestHostileText(t *testing.T) {
	b := letIn(t, &fake{}, drover.RoleAdmin)
	for _, path := range append(slices.Clone(everyPage), "/jobs?q="+url.QueryEscape(nasty), "/instances?cloud="+url.QueryEscape(nasty), "/costs?by=label&label="+url.QueryEscape(nasty),
		"/offers?cloud="+url.QueryEscape(nasty), "/jobs/"+url.PathEscape(nasty), "/events?level="+url.QueryEscape(nasty), "/%2Fexample.org?"+url.QueryEscape(nasty)) {
		t.Run(path, func(t *testing.T) {
			_, text, head := b.get(path)
			if got := head.Get("Content-Security-Policy"); got != policy {
				t.Errorf("the policy is %q", got)
			}
			if !strings.Contains(text, "alert(1)") {
				t.Error("the page does not show the text")
			}
			wantHarmless(t, text)
		})
	}
	t.Run("a page that fails", func(t *testing.T) {
		b := letIn(t, &fake{err: drover.Errorf(drover.KindInvalid, "%s", nasty).WithHint("%s", nasty)}, drover.RoleAdmin)
		for _, path := range []string{"/", "/jobs/17"} {
			code, text, _ := b.get(path)
			if code != 400 || !strings.Contains(text, "alert(1)") {
				t.Errorf("%d %s", code, text)
			}
			wantHarmless(t, text)
		}
	})
	t.Run("a followed log", func(t *testing.T) {
		_, text, _ := letIn(t, &fake{state: drover.JobFailed}, drover.RoleAdmin).get("/jobs/17.3/logs/follow")
		data := strings.ReplaceAll(text, "data: ", "")
		if !strings.Contains(data, "alert(1)") || !strings.HasSuffix(text, "event: end\ndata: end\n\n") {
			t.Errorf("%q", text)
		}
		wantHarmless(t, data)
	})
	t.Run("a live part", func(t *testing.T) {
		for _, path := range []string{"/", "/jobs", "/jobs/17", "/instances", "/instances/x", "/pools", "/pools/x", "/pools/group", "/costs", "/events"} {
			data := liveOf(t, b, path)
			if !strings.Contains(data, "alert(1)") {
				t.Errorf("%s does not show the text: %s", path, data)
			}
			wantHarmless(t, data)
		}
	})
}

// wantHarmless fails if the markup contains something that the templates do not.
func wantHarmless(t *testing.T, text string) {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		for _, a := range n.Attr {
			value := strings.ToLower(strings.TrimSpace(a.Val))
			switch {
			case strings.HasPrefix(a.Key, "on"), a.Key == "style", a.Key == "srcdoc":
				t.Errorf("<%s> has %s=%q", n.Data, a.Key, a.Val)
			case (a.Key == "href" || a.Key == "src" || a.Key == "action") && !strings.HasPrefix(value, "/") && !strings.HasPrefix(value, "#") && !strings.HasPrefix(value, "?"):
				t.Errorf("<%s> leads to %q", n.Data, a.Val)
			case (a.Key == "href" || a.Key == "src" || a.Key == "action") && strings.HasPrefix(value, "//"):
				t.Errorf("<%s> leads to %q", n.Data, a.Val)
			}
		}
		switch n.Data {
		case "img", "iframe", "object", "embed", "base", "style":
			t.Errorf("there is a <%s>", n.Data)
		case "script":
			if n.FirstChild != nil {
				t.Errorf("there is a script: %s", n.FirstChild.Data)
			}
		}
	}
}

// liveOf returns the first live part of a page.
func liveOf(t *testing.T, b browser, path string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "GET", b.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "text/html, text/event-stream")
	answer, err := b.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if kind := answer.Header.Get("Content-Type"); kind != "text/event-stream" {
		t.Fatalf("%s is %s", path, kind)
	}
	var data strings.Builder
	for lines := bufio.NewScanner(answer.Body); lines.Scan() && lines.Text() != ""; {
		if strings.Contains(lines.Text(), "\r") {
			t.Errorf("%s ends a line early: %q", path, lines.Text())
		}
		data.WriteString(strings.TrimPrefix(lines.Text(), "data: ") + "\n")
	}
	return data.String()
}

func TestSessions(t *testing.T) {
	b := letIn(t, &fake{}, drover.RoleView)
	t.Run("the cookie is for HTTP only and for this site only", func(t *testing.T) {
		c := b.Jar.Cookies(nil)[0]
		if !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.MaxAge != 12*3600 || c.Path != "/" || strings.Contains(c.Value, "view") {
			t.Errorf("%+v", c)
		}
		if plain, _ := base64.RawURLEncoding.DecodeString(c.Value); strings.Contains(string(plain), "view") {
			t.Error("the cookie shows the token")
		}
		secure := newSessions(Config{Secure: true})
		if !secure.made(drover.NewSecret("x"), time.Now()).Secure {
			t.Error("the cookie may cross the network unencrypted")
		}
	})
	t.Run("a link works once", func(t *testing.T) {
		link, _ := b.h.Login(drover.NewSecret("view"))
		first, _, _ := b.get(link)
		again, text, _ := b.get(link)
		if first != 303 || again != 401 || !strings.Contains(text, "has already been used") {
			t.Errorf("%d, %d %s", first, again, text)
		}
	})
	t.Run("a link expires after a minute", func(t *testing.T) {
		s := newSessions(Config{})
		now := time.Now()
		code, _ := s.offer(drover.NewSecret("x"), now)
		if _, good := s.take(code, now.Add(codeTime+1)); good {
			t.Error("it works after that")
		}
	})
	t.Run("a prefetch does not use up a link", func(t *testing.T) {
		link, _ := b.h.Login(drover.NewSecret("view"))
		r, _ := http.NewRequestWithContext(t.Context(), "GET", b.url+link, nil)
		r.Header.Set("Sec-Purpose", "prefetch")
		ahead, _, _ := b.do(r)
		if real, _, _ := b.get(link); ahead != 401 || real != 303 {
			t.Errorf("%d, %d", ahead, real)
		}
	})
	t.Run("a link that another site opens does not log in, and is not used up", func(t *testing.T) {
		link, _ := b.h.Login(drover.NewSecret("view"))
		r, _ := http.NewRequestWithContext(t.Context(), "GET", b.url+link, nil)
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		away, text, _ := b.do(r)
		if own, _, _ := b.get(link); away != 401 || own != 303 || !strings.Contains(text, "paste the link into the address bar") {
			t.Errorf("%d, %d", away, own)
		}
	})
	t.Run("each token's number of open links is limited", func(t *testing.T) {
		s := newSessions(Config{})
		for range mostCodes {
			if _, err := s.offer(drover.NewSecret("x"), time.Now()); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.offer(drover.NewSecret("x"), time.Now()); drover.KindOf(err) != drover.KindRateLimit {
			t.Error(err)
		}
		if _, err := s.offer(drover.NewSecret("y"), time.Now()); err != nil {
			t.Errorf("another token: %v", err)
		}
		if _, err := s.offer(drover.NewSecret("x"), time.Now().Add(time.Hour)); err != nil {
			t.Error(err)
		}
	})
	t.Run("without a session, every page says how to get one and does nothing", func(t *testing.T) {
		svc := &fake{}
		b := letIn(t, svc, drover.RoleAdmin)
		for name, cookies := range map[string][]*http.Cookie{
			"none": nil, "made up": {{Name: b.h.sessions.cookie, Value: strings.Repeat("A", 200)}}, "not base64": {{Name: b.h.sessions.cookie, Value: "!"}},
			"too old":         {b.h.sessions.made(drover.NewSecret("admin"), time.Now().Add(-13*time.Hour))},
			"another key's":   {newSessions(Config{Fleet: nasty, Key: [32]byte{1}}).made(drover.NewSecret("admin"), time.Now())},
			"another fleet's": {{Name: b.h.sessions.cookie, Value: newSessions(Config{Fleet: "other"}).made(drover.NewSecret("admin"), time.Now()).Value}},
			"a revoked token": {b.h.sessions.made(drover.NewSecret("revoked"), time.Now())},
		} {
			b.Jar.SetCookies(nil, cookies)
			for _, path := range append(slices.Clone(everyPage), "/jobs/17.3/logs/raw", "/jobs/17.3/logs/follow", "/jobs/17.3/outputs/file?path=x") {
				if code, text, _ := b.get(path); code != 401 || !strings.Contains(text, "drover open") {
					t.Errorf("%s, %s: %d", name, path, code)
				}
			}
			if code, _, _ := b.post("/instances/x", "same-origin", url.Values{"verb": {"kill"}, "reason": {"r"}}); code != 401 {
				t.Errorf("%s: %d", name, code)
			}
		}
		if len(svc.asked) > 0 {
			t.Error(svc.asked)
		}
	})
	t.Run("a live page ends with its session", func(t *testing.T) {
		read, write := io.Pipe()
		defer write.Close()
		b := letIn(t, &fake{logs: func(drover.LogRequest) io.ReadCloser { return read }}, drover.RoleView)
		for _, path := range []string{"/events", "/jobs/17.3/logs/follow"} {
			b.Jar.SetCookies(nil, []*http.Cookie{b.h.sessions.made(drover.NewSecret("view"), time.Now().Add(2*time.Second-sessionTime))})
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			r, _ := http.NewRequestWithContext(ctx, "GET", b.url+path, nil)
			r.Header.Set("Accept", "text/event-stream")
			answer, err := b.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, answer.Body); err != nil || answer.StatusCode != 200 {
				t.Errorf("%s: %s, %v", path, answer.Status, err)
			}
			answer.Body.Close()
		}
	})
	t.Run("the page for logging in is not for those who are logged in", func(t *testing.T) {
		if code, _, head := letIn(t, &fake{}, drover.RoleView).get("/login"); code != 303 || head.Get("Location") != "/" {
			t.Errorf("%d to %q", code, head.Get("Location"))
		}
	})
	t.Run("logging out deletes the cookie", func(t *testing.T) {
		b := letIn(t, &fake{}, drover.RoleView)
		_, _, head := b.post("/logout", "same-origin", nil)
		if c := b.Jar.Cookies(nil)[0]; c.Value != "" || c.MaxAge >= 0 {
			t.Errorf("%+v", c)
		}
		if _, text, _ := b.get(head.Get("Location")); !strings.Contains(text, "You are logged out.") {
			t.Error(text)
		}
	})
}

func TestForms(t *testing.T) {
	svc := &fake{}
	b := letIn(t, svc, drover.RoleOperate)
	for _, c := range []struct {
		path, form string
		to, asked  string
		code       int
	}{
		{"/instances/a%20b", "verb=drain&reason=a+look", "/instances/a%20b?done", "instruct a b drain a look", 303},
		{"/pools/web", "size=5&reason=a+launch", "/pools/web?done", "resize web 5 a launch", 303},
		{"/instances/a", "verb=kill&reason=+", "", "", 400},
		{"/instances/a", "verb=kill", "", "", 400},
		{"/instances/a", "verb=kill&reason=" + strings.Repeat("x", 1001), "", "", 400},
		{"/instances/a", "verb=kill&reason=" + strings.Repeat("ё", 1000), "/instances/a?done", "instruct a kill " + strings.Repeat("ё", 1000), 303},
		{"/jobs/17", "do=cancel&reason=wrong", "/jobs/17?done", "cancel 17 wrong", 303},
		{"/jobs/17.3", "do=retry&reason=mended", "/jobs/17.3?done", "retry 17.3 mended", 303},
		{"/jobs/17", "do=prioritize&priority=5", "/jobs/17?done", "priority 17 5", 303},
		{"/jobs/17", "do=prioritize&priority=x", "", "", 400},
		{"/jobs/17", "do=dance&reason=why", "", "", 400},
		{"/jobs/x", "do=cancel&reason=why", "", "", 404},
		{"/", "do=pause&reason=image", "/?done", "paused yes image", 303},
		{"/", "do=resume&reason=image", "/?done", "paused no image", 303},
		{"/", "do=stop&reason=image", "", "", 400},
		{"/", "do=pause&reason=" + strings.Repeat("x", maxForm), "", "", 400},
	} {
		t.Run(c.path+" "+c.form[:min(len(c.form), 40)], func(t *testing.T) {
			form, _ := url.ParseQuery(c.form)
			svc.asked = nil
			code, text, head := b.post(c.path, "same-origin", form)
			if code != c.code || head.Get("Location") != c.to || strings.Join(svc.asked, ";") != c.asked {
				t.Errorf("%d to %q, asked %q: %s", code, head.Get("Location"), svc.asked, text)
			}
			for _, from := range []string{"cross-site", "same-site"} {
				svc.asked = nil
				if code, _, _ := b.post(c.path, from, form); code != 403 || svc.asked != nil {
					t.Errorf("%s: %d, asked %q", from, code, svc.asked)
				}
			}
		})
	}
	t.Run("a form changes with what it is about", func(t *testing.T) {
		svc := &fake{state: drover.JobRunning}
		b := letIn(t, svc, drover.RoleOperate)
		running := liveOf(t, b, "/jobs/17.3")
		svc.state = drover.JobFailed
		failed := liveOf(t, b, "/jobs/17.3")
		if !strings.Contains(running, `value="cancel"`) || strings.Contains(running, `value="retry"`) || strings.Contains(failed, `value="cancel"`) || !strings.Contains(failed, `value="retry"`) {
			t.Error(running, failed)
		}
	})
	t.Run("an error that will pass leaves a live page and its forms as they are", func(t *testing.T) {
		for _, kind := range []drover.ErrorKind{drover.KindRateLimit, drover.KindTransient, drover.KindInternal} {
			svc := &fake{err: drover.Errorf(kind, "so it is")}
			b := letIn(t, svc, drover.RoleOperate)
			made, err := b.h.livePart(&request{Request: httptest.NewRequest("GET", "/", nil), svc: svc, now: time.Now()}, b.h.pages["/{$}"])
			if err != nil || (len(made) == 0) != (kind != drover.KindInternal) {
				t.Errorf("%s: %v %s", kind, err, made)
			}
		}
	})
	t.Run("a page has only the forms its reader may use", func(t *testing.T) {
		for role, want := range map[drover.Role]bool{drover.RoleView: false, drover.RoleSubmit: false, drover.RoleOperate: true} {
			b := letIn(t, &fake{}, role)
			for _, path := range []string{"/", "/instances/x"} {
				if _, text, _ := b.get(path); strings.Contains(text, `name="reason"`) != want {
					t.Errorf("%s of %s: %v", path, role, !want)
				}
			}
		}
	})
}

func TestPages(t *testing.T) {
	t.Run("a search for an id redirects to the job", func(t *testing.T) {
		code, _, head := letIn(t, &fake{}, drover.RoleView).get("/jobs?q=17.3")
		if code != 303 || head.Get("Location") != "/jobs/17.3" {
			t.Errorf("%d to %s", code, head.Get("Location"))
		}
	})
	t.Run("a search requests matching jobs, newest first, page by page", func(t *testing.T) {
		var asked []drover.JobFilter
		svc := &fake{page: func(f drover.JobFilter) (drover.Page[drover.Job], error) {
			asked = append(asked, f)
			return drover.Page[drover.Job]{Next: "77"}, nil
		}}
		b := letIn(t, svc, drover.RoleView)
		_, text, _ := b.get("/jobs?q=project%3Da%26b&state=failed&user=ada")
		b.get("/jobs?q=night&mine=1&before=99")
		want := []drover.JobFilter{
			{Labels: map[string]string{"project": "a&b"}, States: []drover.JobState{"failed"}, User: "ada", Newest: true, Limit: jobsShown},
			{Match: "night", Mine: true, Newest: true, After: drover.JobID{Number: 99, Index: -1}, Limit: jobsShown},
		}
		if diff := cmp.Diff(want, asked); diff != "" {
			t.Error(diff)
		}
		if !strings.Contains(text, `href="/jobs?before=77&amp;q=project%3Da%26b&amp;state=failed&amp;user=ada"`) {
			t.Error("there is no link to the next page: " + text)
		}
	})
	t.Run("a list of jobs leads back to its newest, and says that there are none yet only without a search", func(t *testing.T) {
		svc := &fake{page: func(drover.JobFilter) (drover.Page[drover.Job], error) { return drover.Page[drover.Job]{}, nil }}
		b := letIn(t, svc, drover.RoleView)
		_, all, _ := b.get("/jobs")
		_, text, _ := b.get("/jobs?q=a%26b&state=failed&user=ada&mine=1&before=99")
		if !strings.Contains(text, `<a href="/jobs?q=a%26b&amp;state=failed&amp;user=ada&amp;mine=1">Newest</a>`) || !strings.Contains(text, "No job matches.") {
			t.Error(text)
		}
		if !strings.Contains(all, "There are no jobs yet.") {
			t.Error(all)
		}
	})
	t.Run("a node group shows its target and limits, and has no form, since its autoscaler sets the target", func(t *testing.T) {
		b := letIn(t, &fake{}, drover.RoleAdmin)
		_, list, _ := b.get("/pools")
		_, text, _ := b.get("/pools/group")
		for _, want := range []string{"node group", "<dt>Target</dt><dd>7</dd>", "2 to 1,200", "autoscaler of the group's Kubernetes cluster sets the target"} {
			if !strings.Contains(text, want) {
				t.Errorf("%q is missing in %s", want, text)
			}
		}
		if strings.Contains(text, "Resize") || !strings.Contains(list, "2 to 1,200") || !strings.Contains(list, "For a node group, the autoscaler") {
			t.Error(list, text)
		}
		if _, text, _ := b.get("/pools/x"); !strings.Contains(text, "Resize") {
			t.Error(text)
		}
	})
	t.Run("a pool shows its stopped instances, unless it keeps none", func(t *testing.T) {
		b := letIn(t, &fake{}, drover.RoleView)
		_, list, _ := b.get("/pools")
		_, text, _ := b.get("/pools/x")
		_, group, _ := b.get("/pools/group")
		if !strings.Contains(list, `<td class="num">2/1,300</td>`) || !strings.Contains(list, ">Stopped</th>") || strings.Contains(list, "0/0") {
			t.Error(list)
		}
		if !strings.Contains(text, "<dt>Stopped</dt><dd>2 of 1,300</dd>") || !strings.Contains(text, "<dt>Lent</dt><dd>3, started for jobs</dd>") {
			t.Error(text)
		}
		if strings.Contains(group, "Stopped") || strings.Contains(group, "Lent") {
			t.Error(group)
		}
	})
	t.Run("a pool lists its live instances, however many others there are", func(t *testing.T) {
		svc := &fake{instances: func(f drover.InstanceFilter) (page drover.Page[drover.Instance], err error) {
			if f.After == 0 {
				return drover.Page[drover.Instance]{Items: []drover.Instance{{Name: "other", Pool: "y"}, {Name: "mine-2", Pool: "x", Idle: "hold", Reason: &drover.Reason{Text: "a look"}}}, Next: "7"}, nil
			}
			return drover.Page[drover.Instance]{Items: []drover.Instance{{Name: "mine-1", Pool: "x", Idle: "run"}}}, nil
		}}
		_, text, _ := letIn(t, svc, drover.RoleView).get("/pools/x")
		if !strings.Contains(text, `href="/instances/mine-1"`) || !strings.Contains(text, `href="/instances/mine-2"`) || !strings.Contains(text, "a look") || strings.Contains(text, "other") {
			t.Error(text)
		}
	})
	t.Run("instances are live ones by default, and the newest page keeps the search", func(t *testing.T) {
		var asked []drover.InstanceFilter
		svc := &fake{instances: func(f drover.InstanceFilter) (drover.Page[drover.Instance], error) {
			f.Since = min(f.Since, 1)
			asked = append(asked, f)
			return drover.Page[drover.Instance]{Items: []drover.Instance{{Name: "kept", Idle: "hold", Reason: &drover.Reason{Text: "a look"}}}}, nil
		}}
		b := letIn(t, svc, drover.RoleView)
		_, list, _ := b.get("/instances")
		_, older, _ := b.get("/instances?state=gone&cloud=c&span=6h&before=9")
		b.get("/instances?state=any")
		want := []drover.InstanceFilter{{}, {Since: 1, States: []drover.InstanceState{"gone"}, Cloud: "c", After: 9}, {Since: 1}}
		for i := range want {
			want[i].Newest, want[i].Limit, want[i].Attempts = true, instancesShown, attemptsShown
		}
		if diff := cmp.Diff(want, asked); diff != "" {
			t.Error(diff)
		}
		if !strings.Contains(list, "a look") || strings.Contains(list, "Newest") || !strings.Contains(older, `href="/instances?cloud=c&amp;span=6h&amp;state=gone">Newest`) {
			t.Error(list, older)
		}
	})
	t.Run("an instance has buttons only for verbs that change something", func(t *testing.T) {
		for _, c := range []struct {
			state drover.InstanceState
			idle  drover.IdleBehavior
			want  string
		}{{"idle", "run", "drain hold kill"}, {"idle", "hold", "drain release kill"}, {"running", "drain", "hold release kill"}, {"stopping", "drain", "kill"}, {"gone", "run", ""}} {
			got := fmt.Sprint(verbsFor(drover.Instance{State: c.state, Idle: c.idle}))
			if got != "["+c.want+"]" {
				t.Errorf("%s %s: %s", c.state, c.idle, got)
			}
		}
	})
	t.Run("the overview lists pools only with a reason", func(t *testing.T) {
		_, text, _ := letIn(t, &fake{}, drover.RoleView).get("/")
		if !strings.Contains(text, "Why pools differ from their size") || !strings.Contains(text, `href="/pools/group"`) || strings.Contains(text, `href="/pools/x"`) {
			t.Error(text)
		}
	})
	t.Run("an exceeded soft limit is shown below a hard one that is far away", func(t *testing.T) {
		got := budgetsOf([]drover.BudgetUse{{Scope: "fleet", Hard: 600, Soft: 0.05, Spent: 1.78}, {Scope: "user ada", Hard: 10, Soft: 5, Spent: 1}, {Scope: "fleet", Soft: 1, Spent: 1}, {Scope: "fleet", Hard: 1, Spent: 1}}, true)
		for i, want := range []budget{{Level: "near", Warned: true}, {Level: "good", Mark: 50, NoPools: true}, {Level: "near", Warned: true}, {Level: "passed"}} {
			if b := got[i]; b.Level != want.Level || b.Warned != want.Warned || b.Mark != want.Mark || b.NoPools != want.NoPools {
				t.Errorf("%d: %+v", i, b)
			}
		}
	})
	t.Run("a spare pool shows how many of its instances are idle and in use", func(t *testing.T) {
		b := letIn(t, &fake{}, drover.RoleView)
		_, list, _ := b.get("/pools")
		_, text, _ := b.get("/pools/spare")
		if !strings.Contains(list, ">In use</th>") || !strings.Contains(list, "1 idle</td>") || !strings.Contains(text, "<dd>4, 4 ready: 0 idle, 4 in use</dd>") {
			t.Error(list, text)
		}
	})
	t.Run("static files are cached by version, and their folder is not listed", func(t *testing.T) {
		b := letIn(t, &fake{}, drover.RoleView)
		_, text, head := b.get("/static/style.css?v=" + b.h.version)
		if !strings.Contains(head.Get("Cache-Control"), "immutable") || !strings.Contains(text, "--ground") {
			t.Error(head)
		}
		if _, _, head := b.get("/static/style.css?v=other"); strings.Contains(head.Get("Cache-Control"), "immutable") {
			t.Error(head)
		}
		if code, text, _ := b.get("/static/"); code == 200 && strings.Contains(text, "style.css") {
			t.Error(text)
		}
	})
	t.Run("a job's file is never shown as a page", func(t *testing.T) {
		b := letIn(t, &fake{}, drover.RoleView)
		for _, path := range []string{"/jobs/17.3/outputs/file?path=a.html", "/jobs/17.3/logs/raw"} {
			_, text, head := b.get(path)
			if !strings.HasPrefix(head.Get("Content-Disposition"), "attachment") || !strings.Contains(head.Get("Content-Security-Policy"), "sandbox") ||
				head.Get("X-Content-Type-Options") != "nosniff" || !strings.Contains(text, nasty) {
				t.Errorf("%s: %v", path, head)
			}
		}
	})
	t.Run("a long log shows its end, from the beginning of a line", func(t *testing.T) {
		long := strings.Repeat(strings.Repeat("x", 99)+"\n", 5000) + "the end"
		svc := &fake{logs: func(drover.LogRequest) io.ReadCloser { return io.NopCloser(strings.NewReader(long)) }, state: drover.JobSucceeded}
		_, text, _ := letIn(t, svc, drover.RoleView).get("/jobs/17.3/logs")
		if len(text) > logShown+10_000 || !strings.Contains(text, "the end</pre>") || !strings.Contains(text, "\n"+strings.Repeat("x", 99)+"\n") {
			t.Errorf("%d bytes", len(text))
		}
	})
	t.Run("a log is shown as a terminal would show it, without colours", func(t *testing.T) {
		for text, want := range map[string]string{
			"\x1b[1;31mERROR\x1b[0m: gone\r\n":                         "ERROR: gone\n",
			"\x1b]0;a title\x07a\x1b]8;;http://b\x1b\\c\x1b]8;;\x1b\\": "ac",
			"\x1b]unfinished\nnext \x1b(Bline\x1b[":                    "\nnext line",
			"\r 1%\r 50%\r100%\r\r\ndone 1\rdone 2\r":                  "100%\ndone 2",
			"a bell\x07\u202e":                                         "a bell\uFFFD\uFFFD",
		} {
			if got := shownLog([]byte(text)); got != want {
				t.Errorf("%q is shown as %q, want %q", text, got, want)
			}
		}
	})
	t.Run("a followed log sends a line that has not ended again", func(t *testing.T) {
		read, write := io.Pipe()
		svc := &fake{logs: func(drover.LogRequest) io.ReadCloser { return read }, state: drover.JobFailed}
		go func() {
			for _, piece := range []string{"first\n1%\r2%\x1b[3", "1m\r3", "%\r\nlast"} {
				io.WriteString(write, piece)
				time.Sleep(3 * gather)
			}
			write.Close()
		}()
		_, text, _ := letIn(t, svc, drover.RoleView).get("/jobs/17.3/logs/follow")
		at := 0
		for _, want := range []string{`#log" hx-swap="innerHTML"><span>first`, `<span id="unended">2%</span>`, `<span></span><span id="unended">3</span>`, `#unended" hx-swap="outerHTML"><span>3%`, `<span id="unended">last</span>`, "Ended: ", "event: end"} {
			next := strings.Index(text[at:], want)
			if next < 0 {
				t.Fatalf("%q is missing in %s", want, text)
			}
			at += next
		}
	})
	t.Run("a long line is not split within a character", func(t *testing.T) {
		text := []byte(strings.Repeat("█", longLine))
		for n := len(text) - 3; n <= len(text); n++ {
			ended, line := lines(text[:n])
			if got := string(ended) + string(line); !utf8.Valid(ended) || len(line) > 2 || got != string(text[:n]) {
				t.Errorf("%d: %q", n, line)
			}
		}
	})
	t.Run("a followed log says where output is left out", func(t *testing.T) {
		read, write := io.Pipe()
		svc := &fake{logs: func(drover.LogRequest) io.ReadCloser { return read }, state: drover.JobFailed}
		go func() {
			io.WriteString(write, "first\n")
			time.Sleep(3 * gather)
			io.WriteString(write, strings.Repeat("next\n", logShown))
			write.Close()
		}()
		_, text, _ := letIn(t, svc, drover.RoleView).get("/jobs/17.3/logs/follow")
		before, after, _ := strings.Cut(text, "first")
		if strings.Contains(before, "left out") || !strings.Contains(after, "<span>"+strings.TrimSpace(leftOut)+"\ndata: next\n") {
			t.Error(text[:min(len(text), 1000)])
		}
	})
	t.Run("a failed job shows the last lines of its log", func(t *testing.T) {
		for stream, want := range map[drover.Stream]string{drover.Stderr: "\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12</pre>", drover.Stdout: "\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12</pre>"} {
			svc := &fake{state: drover.JobFailed, logs: func(r drover.LogRequest) io.ReadCloser {
				if r.Stream != stream {
					return io.NopCloser(strings.NewReader(""))
				}
				return io.NopCloser(strings.NewReader("1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n"))
			}}
			if _, text, _ := letIn(t, svc, drover.RoleView).get("/jobs/17.3"); !strings.Contains(text, want) || strings.Contains(text, "\n2\n3\n") {
				t.Errorf("%s: %s", stream, text)
			}
		}
	})
	t.Run("a log's other stream is of the same attempt", func(t *testing.T) {
		if _, text, _ := letIn(t, &fake{}, drover.RoleView).get("/jobs/17.3/logs?attempt=1"); !strings.Contains(text, `href="?stream=stderr&amp;attempt=1"`) {
			t.Error(text)
		}
	})
	t.Run("an array's page says which elements it shows, and of how many", func(t *testing.T) {
		svc := &fake{page: func(drover.JobFilter) (drover.Page[drover.Job], error) {
			return drover.Page[drover.Job]{Items: make([]drover.Job, 2), Next: "17.3"}, nil
		}}
		_, text, _ := letIn(t, svc, drover.RoleView).get("/jobs/17?state=failed&after=17.1&from=2")
		for _, want := range []string{"3–4 of 4", `href="/jobs/17?state=failed">First</a>`, `href="/jobs/17?after=17.3&amp;from=4&amp;state=failed"`, `href="/jobs/17?state=queued"`} {
			if !strings.Contains(text, want) {
				t.Errorf("%q is missing in %s", want, text)
			}
		}
		if _, text, _ := letIn(t, svc, drover.RoleView).get("/jobs/17?state=bogus"); !strings.Contains(text, "<h2>Elements</h2>\n  <div") {
			t.Errorf("the heading has a state that does not exist: %s", text)
		}
	})
	t.Run("an event gives its reason, and names its job or instance once", func(t *testing.T) {
		why := &drover.Reason{Text: "exit code 7"}
		id := drover.JobID{Number: 4, Index: 2}
		for want, e := range map[mention]drover.Event{
			{"", "job a.2", "/jobs/4.2", " failed: exit code 7"}:  {Text: "job a.2 failed", Job: &id, Reason: why},
			{"", "job a.2", "/jobs/4.2", ": exit code 7"}:         {Text: "job a.2: exit code 7", Job: &id, Reason: why},
			{"instance ", "x-1", "/instances/x-1", " is gone"}:    {Text: "instance x-1 is gone", Instance: "x-1"},
			{"lost the connection ", "x-1", "/instances/x-1", ""}: {Text: "lost the connection", Instance: "x-1"},
		} {
			if got := mentionIn(e); got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
		}
	})
	t.Run("slow costs are shown once they are added up", func(t *testing.T) {
		goOn := make(chan struct{})
		svc := &fake{costs: func() (drover.Costs, error) {
			<-goOn
			return drover.Costs{Total: drover.CostLine{Cost: 12345}}, nil
		}}
		b := letIn(t, svc, drover.RoleView)
		began := time.Now()
		if _, text, _ := b.get("/costs"); !strings.Contains(text, "Adding up") || time.Since(began) > time.Second {
			t.Errorf("after %v: %s", time.Since(began), text)
		}
		close(goOn)
		for deadline := time.Now().Add(10 * time.Second); ; {
			if _, text, _ := b.get("/costs"); strings.Contains(text, "$12,345.00") {
				break
			}
			if time.Now().After(deadline) {
				t.Fatal("they are not shown")
			}
		}
	})
	t.Run("the overview's total is never below the month's costs", func(t *testing.T) {
		b := letIn(t, &fake{costs: func() (drover.Costs, error) { return drover.Costs{Total: drover.CostLine{Cost: 12345}}, nil }}, drover.RoleView)
		if _, text, _ := b.get("/"); strings.Count(text, "<dd>$12,345.00</dd>") != 2 {
			t.Error(text)
		}
	})
	t.Run("events before the controller's start are not denied", func(t *testing.T) {
		b := letIn(t, &fake{quiet: true}, drover.RoleView)
		for _, path := range []string{"/", "/events"} {
			if _, text, _ := b.get(path); !strings.Contains(text, "No events since the controller started.") {
				t.Errorf("%s: %s", path, text)
			}
		}
	})
	t.Run("only those who may read all labels can group costs by label", func(t *testing.T) {
		for role, want := range map[drover.Role]bool{drover.RoleView: false, drover.RoleSubmit: false, drover.RoleOperate: true} {
			if _, text, _ := letIn(t, &fake{}, role).get("/costs"); strings.Contains(text, `<option value="label"`) != want {
				t.Errorf("%s: offered: %v", role, !want)
			}
		}
		b := letIn(t, &fake{}, drover.RoleView)
		b.h.cfg.Shared = true
		if _, text, _ := b.get("/costs"); !strings.Contains(text, `<option value="label"`) {
			t.Error("not offered, although everything is shared")
		}
	})
	t.Run("costs are added up only for the periods that there are", func(t *testing.T) {
		b := letIn(t, &fake{}, drover.RoleView)
		for _, since := range []string{"24h", "a", "b"} {
			b.get("/costs?since=" + since)
		}
		if n := len(b.h.sums.known); n != 1 {
			t.Errorf("%d sums", n)
		}
	})
	t.Run("an error leads back to the page above it", func(t *testing.T) {
		b := letIn(t, &fake{err: drover.Errorf(drover.KindInvalid, "so it is")}, drover.RoleView)
		for from, to := range map[string]string{
			"/jobs?before=x": "/jobs", "/offers?vcpus=x": "/offers", "/jobs/17?state=failed": "/jobs", "/jobs/17.3/logs?attempt=x": "/jobs/17.3",
			"/jobs/17.3/outputs/file?path=x": "/jobs/17.3", "/": "/",
		} {
			if _, text, _ := b.get(from); !strings.Contains(text, `<a href="`+to+`">Back</a>`) {
				t.Errorf("%s: %s", from, text)
			}
		}
	})
	t.Run("a command in an error stays as it is typed", func(t *testing.T) {
		b := letIn(t, &fake{err: drover.Errorf(drover.KindNotFound, "so it is").WithHint("drover jobs 7 lists them")}, drover.RoleView)
		if _, text, _ := b.get("/jobs/17"); !strings.Contains(text, ">drover jobs 7 lists them.<") {
			t.Error(text)
		}
	})
	t.Run("offers refuse what is not a number of GPUs in plain words", func(t *testing.T) {
		b := letIn(t, &fake{}, drover.RoleView)
		for _, gpus := range []string{"-1", "two"} {
			if code, text, _ := b.get("/offers?gpus=" + gpus); code != 400 || !strings.Contains(text, gpus+"&#34; is not a number of GPUs.") {
				t.Errorf("%d %s", code, text)
			}
		}
	})
	t.Run("a list has the code of why a job waits, since its text may be cut", func(t *testing.T) {
		for state, want := range map[drover.JobState]bool{drover.JobQueued: true, drover.JobFailed: false} {
			job := drover.Job{State: state, Reason: &drover.Reason{Code: "budget", Text: "too long"}}
			svc := &fake{page: func(drover.JobFilter) (drover.Page[drover.Job], error) {
				return drover.Page[drover.Job]{Items: []drover.Job{job}}, nil
			}}
			b := letIn(t, svc, drover.RoleView)
			for _, path := range []string{"/", "/jobs", "/jobs/17"} {
				if _, text, _ := b.get(path); strings.Contains(text, "<code>budget</code> too long") != want {
					t.Errorf("%s of a job that is %s: %s", path, state, text)
				}
			}
		}
	})
	t.Run("an error is shown with the status of its kind", func(t *testing.T) {
		for kind, want := range map[drover.ErrorKind]int{drover.KindNotFound: 404, drover.KindForbidden: 403, drover.KindInternal: 500} {
			b := letIn(t, &fake{err: drover.Errorf(kind, "so it is")}, drover.RoleView)
			if code, text, _ := b.get("/jobs/17"); code != want || !strings.Contains(text, "<p>So it is.</p>") || !strings.Contains(text, `<a href="/jobs">Back</a>`) {
				t.Errorf("%s: %d %s", kind, code, text)
			}
		}
	})
}

func TestIncompleteLogIsAnError(t *testing.T) {
	for _, cause := range []error{errors.New("gone"), context.Canceled} { // the latter when the controller shuts down
		t.Run(cause.Error(), func(t *testing.T) {
			svc := &fake{logs: func(drover.LogRequest) io.ReadCloser {
				return io.NopCloser(io.MultiReader(strings.NewReader("the beginning"), iotest.ErrReader(cause)))
			}}
			b := letIn(t, svc, drover.RoleView)
			r, _ := http.NewRequestWithContext(t.Context(), "GET", b.url+"/jobs/17.3/logs/raw", nil)
			answer, err := b.Do(r)
			if err == nil {
				_, err = io.ReadAll(answer.Body)
				answer.Body.Close()
			}
			if err == nil {
				t.Error("it looks complete")
			}
		})
	}
}
