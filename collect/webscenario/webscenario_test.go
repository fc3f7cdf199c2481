package webscenario

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tidemark/collect/httpagent"
	"tidemark/collect/poller"
	"tidemark/internal/guard"
	"tidemark/model"
)

// shop is a site with a login: the form has a token, the session is a cookie.
func shop(t *testing.T) *httptest.Server {
	m := http.NewServeMux()
	m.HandleFunc("GET /login", func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "seen", Value: "1", Path: "/"})
		fmt.Fprintf(w, `<form><input name="token" value="a&amp;b %s"/></form>`, r.Header.Get("X-Lang"))
	})
	m.HandleFunc("POST /login", func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		if c, err := r.Cookie("seen"); err != nil || c.Value != "1" || r.Form.Get("token") != "a&b de" || r.Form.Get("user") != "eve" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		http.SetCookie(w, &http.Cookie{Name: "session", Value: "s1", Path: "/"})
		http.Redirect(w, r, "/home", http.StatusFound)
	})
	m.HandleFunc("/home", func(w http.ResponseWriter, r *http.Request) {
		if c, err := r.Cookie("session"); err != nil || c.Value != "s1" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("X-Account", "4711")
		fmt.Fprintf(w, `{"user":"eve","agent":%q,"id":7}`, r.UserAgent())
	})
	m.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s|%s", r.Method, r.URL.RequestURI(), body, r.Header.Get("X-Step"))
	})
	s := httptest.NewServer(m)
	t.Cleanup(s.Close)
	return s
}

func scenario(url string, steps ...model.WebStep) *model.WebScenario {
	for i := range steps {
		steps[i].URL, steps[i].FollowRedirects = url+steps[i].URL, true
		if steps[i].Timeout == 0 {
			steps[i].Timeout = time.Minute
		}
		if steps[i].Retrieve == "" {
			steps[i].Retrieve = "BODY"
		}
	}
	return &model.WebScenario{Name: "shop", Agent: "Tester", Attempts: 1, Steps: steps}
}

func checker() *Checker {
	rules := guard.New(guard.Options{Denied: []netip.Prefix{netip.MustParsePrefix("169.254.0.0/16")}})
	return New(httpagent.New(httpagent.Options{Rules: rules}), nil)
}

// A login with a token, a cookie, a redirect and values taken out of answers in each way.
func TestChecker_login(t *testing.T) {
	s := shop(t)
	w := scenario(s.URL,
		model.WebStep{Name: "form", URL: "/login", Headers: []model.Pair{{Name: "X-Lang", Value: "de"}}, Required: "<form>", Variables: []model.Pair{{Name: "{token}", Value: `xmlxpath:string(//input/@value)`}, {Name: "{re}", Value: `regex:name="(\w+)"`}}},
		model.WebStep{Name: "login", URL: "/login", Form: []model.Pair{{Name: "user", Value: "{user}"}, {Name: "{re}", Value: "{token}"}}, StatusCodes: "200", Required: `"user":"eve"`, Retrieve: "BOTH", Variables: []model.Pair{{Name: "{account}", Value: "regex:X-Account: ([0-9]+)"}}},
		model.WebStep{Name: "again", URL: "/home", Variables: []model.Pair{{Name: "{id}", Value: "jsonpath:$.id"}}, Required: `"agent":"Tester"`},
		model.WebStep{Name: "echo", URL: "/echo?q={{token}.urlencode()}", Posts: "{id} {account} {nothing} {{user}.urldecode()}", Required: `^POST /echo\?q=a%26b\+de 7 4711 \{nothing\} eve\|$`},
	)
	w.Variables = []model.Pair{{Name: "{user}", Value: "eve"}}
	got := checker().Run(t.Context(), w)
	if got.Fail != 0 {
		t.Fatal(got)
	}
	if got.In == nil || *got.In <= 0 {
		t.Errorf("mean speed %v", got.In)
	}
	for i, step := range got.Steps {
		if step.Status == nil || *step.Status != 200 || step.Time == nil || *step.Time <= 0 || step.In == nil {
			t.Errorf("step %d: %+v", i, step)
		}
	}
}

func TestChecker_failures(t *testing.T) {
	s := shop(t)
	f := func(steps []model.WebStep, fail, answered int, want string) {
		t.Helper()
		got := checker().Run(t.Context(), scenario(s.URL, steps...))
		have := 0
		for _, step := range got.Steps {
			if step.Status != nil {
				have++
			}
		}
		if got.Fail != fail || have != answered || !strings.Contains(got.Error, want) {
			t.Errorf("%+v, %d answers; want step %d, %d answers, %s", got, have, fail, answered, want)
		}
	}
	ok := model.WebStep{Name: "ok", URL: "/echo"}
	f([]model.WebStep{ok, {Name: "home", URL: "/home", StatusCodes: "200-299"}, ok}, 2, 2, `step "home": response code 401 did not match any of the required status codes "200-299"`)
	f([]model.WebStep{{Name: "word", URL: "/echo", Required: "no such"}, ok}, 1, 1, `required pattern "no such" was not found`)
	f([]model.WebStep{{Name: "re", URL: "/echo", Required: "("}, ok}, 1, 1, `regular expression "("`)
	f([]model.WebStep{{Name: "var", URL: "/echo", Variables: []model.Pair{{Name: "{v}", Value: "regex:nothing"}}}}, 1, 1, "variable {v}: regular expression")
	f([]model.WebStep{{Name: "json", URL: "/echo", Variables: []model.Pair{{Name: "{v}", Value: "jsonpath:$.a"}}}}, 1, 1, "variable {v}: ")
	f([]model.WebStep{{Name: "xml", URL: "/login", Variables: []model.Pair{{Name: "{v}", Value: "xmlxpath:string(//nothing)"}}}}, 1, 1, "variable {v}: ")
	f([]model.WebStep{{Name: "big", URL: "/echo", Posts: strings.Repeat("x", maxFilledBytes+1)}}, 1, 0, "with its variables the request has")
	metadata := scenario("http://169.254.169.254", model.WebStep{Name: "cloud", URL: "/"})
	if got := checker().Run(t.Context(), metadata); got.Fail != 1 || !strings.Contains(got.Error, "must not reach 169.254.169.254") {
		t.Error(got)
	}
	long := checker().Run(t.Context(), scenario(s.URL, model.WebStep{Name: "long", URL: "/echo", Required: strings.Repeat("ü", 300)}))
	if n := len([]rune(long.Error)); n != maxErrorRunes {
		t.Errorf("the error has %d characters", n)
	}
}

// What went wrong is a value of an item, and people see it.
func TestChecker_conceals(t *testing.T) {
	s := shop(t)
	w := scenario(s.URL, model.WebStep{Name: "a", URL: "/echo?key=s3cret", Required: "no such"})
	w.Steps[0].Timeout = time.Minute
	item := &model.Item{Collect: &model.Collect{Web: w, Secrets: []model.Macro{{Name: "{$KEY}", Value: "s3cret"}}}}
	results := make([]poller.Result, 1)
	checker().Check(t.Context(), []*poller.Task{{Item: item}}, results)
	if text := string(results[0].Text); strings.Contains(text, "s3cret") || !strings.Contains(text, "key={$KEY}") {
		t.Errorf("the outcome is %s", text)
	}
}

// A step without an answer is tried again; one with a wrong answer is not.
func TestChecker_attempts(t *testing.T) {
	var asked, wrong atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wrong" {
			wrong.Add(1)
			w.WriteHeader(http.StatusTeapot)
			return
		}
		if r.Method != http.MethodHead || asked.Add(1) < 3 {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("X-Hello", "there")
	}))
	defer s.Close()
	w := scenario(s.URL, model.WebStep{Name: "head", URL: "/", Retrieve: "HEADERS", Required: "X-Hello: there"}, model.WebStep{Name: "wrong", URL: "/wrong", StatusCodes: "200"})
	w.Attempts = 3
	c := checker()
	if got := c.Run(t.Context(), w); got.Fail != 2 || asked.Load() != 3 || wrong.Load() != 1 {
		t.Errorf("%s after %d and %d requests", got, asked.Load(), wrong.Load())
	}
	if n := c.retry.Get(); n != 2 {
		t.Errorf("%d retries are counted", n)
	}
}

// FuzzFill shows that no text makes more than its bound, and that a text without variables stays as it is.
func FuzzFill(f *testing.F) {
	for _, text := range []string{"", "{a}", "{{a}.urlencode()}", "{{a}", "{{a}.urldecode()}{b", "}{", "{a}{a}{a}"} {
		f.Add(text, "x%20y", "regex:(.)")
	}
	f.Fuzz(func(t *testing.T, text, value, source string) {
		r := &run{variables: map[string]string{"{a}": value}}
		got := r.fill(text)
		if len(got) > maxFilledBytes+3*len(value)+1 {
			t.Errorf("%d bytes", len(got))
		}
		if !strings.Contains(text, "{a}") && got != text {
			t.Errorf("%q became %q", text, got)
		}
		_ = r.take([]model.Pair{{Name: "{v}", Value: source}}, []byte(value), true)
	})
}
