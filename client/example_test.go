package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"tidemark/client"
)

// stub stands for a server in the examples.
func stub() *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/problems":
			fmt.Fprint(w, `{"problems":[{"event_id":"12","host":"db1","name":"Disk is full","severity":"high"}],"total":1}`)
		case "/api/hosts":
			fmt.Fprint(w, `{"hosts":[{"id":"4","host":"db1"}],"total":1}`)
		case "/api/items":
			fmt.Fprint(w, `{"items":[{"id":"9","key":"agent.ping","units":""}],"total":1}`)
		case "/api/values":
			fmt.Fprint(w, `{"values":[{"at":1790000000000,"value":{"t":"unsigned","v":"1"}}]}`)
		case "/api/search":
			fmt.Fprint(w, `{"results":[{"kind":"host","title":"db1"}]}`)
		default:
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"error":{"code":"not_found","message":"no problem has this id"}}`)
		}
	}))
}

// All problems that are open and bad, however many pages they fill.
func ExampleClient_AllProblems() {
	server := stub()
	defer server.Close()
	c, err := client.New(client.Options{Address: server.URL, Token: "tm_example"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for p, err := range c.AllProblems(context.Background(), client.ProblemFilter{Open: true, Severities: []string{"high", "disaster"}}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(p.Severity, p.Host, p.Name)
	}
	// Output: high db1 Disk is full
}

// The values of an item in the last ten minutes, exactly as they are stored.
func ExampleClient_AllValues() {
	server := stub()
	defer server.Close()
	c, err := client.New(client.Options{Address: server.URL})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	item, err := c.ItemByKey(ctx, "db1", "agent.ping")
	if err != nil {
		fmt.Println(err)
		return
	}
	for v, err := range c.AllValues(ctx, item.ID, client.ValueFilter{From: time.Now().Add(-10 * time.Minute)}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(time.UnixMilli(v.At).UTC().Format(time.RFC3339), v.Value.V)
	}
	// Output: 2026-09-21T14:13:20Z 1
}

// What the server refuses is an error with a code for programs and a message for people.
func ExampleError() {
	server := stub()
	defer server.Close()
	c, err := client.New(client.Options{Address: server.URL})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = c.Acknowledge(context.Background(), "7", "I look at it")
	var e *client.Error
	if errors.As(err, &e) {
		fmt.Println(e.Status, e.Code, e.Message, e.Temporary())
	}
	// Output: 404 not_found no problem has this id false
}

// Every route of /api/openapi.json can be called.
func ExampleClient_Get() {
	server := stub()
	defer server.Close()
	c, err := client.New(client.Options{Address: server.URL})
	if err != nil {
		fmt.Println(err)
		return
	}
	var found client.SearchAnswer
	if err := c.Get(context.Background(), "/api/search", map[string][]string{"q": {"db1"}}, &found); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(found.Results[0].Kind, found.Results[0].Title)
	// Output: host db1
}
