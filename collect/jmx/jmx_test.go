package jmx

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"tidemark/collect/poller"
	"tidemark/model"
	"tidemark/wire/zbx"
)

// startGateway answers each request with the next of some texts and hands the requests over.
func startGateway(t *testing.T, answers ...string) (address string, requests <-chan string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	seen := make(chan string, len(answers))
	go func() {
		for _, a := range answers {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			var r zbx.FrameReader
			r.MaxBodyBytes = 1 << 20
			_, body, _ := r.Read(nc)
			seen <- string(body)
			if a != "" {
				_, _ = nc.Write(zbx.AppendFrame(nil, []byte(a)))
			}
			nc.Close()
		}
	}()
	return ln.Addr().String(), seen
}

func TestChecker(t *testing.T) {
	task := func(key string, a *model.Collect) *poller.Task {
		return &poller.Task{Item: &model.Item{Key: key, Collect: a}, Interface: &model.Interface{Address: "h", Port: "1"}}
	}
	address, requests := startGateway(t, `{"response":"success","data":[{"value":"1"},{"error":"no bean"}]}`, `{"response":"success","data":[{}]}`)
	results := make([]poller.Result, 3)
	own := &model.Collect{JMXEndpoint: "service:jmx:x", Username: "u", Password: "p"}
	New(Options{Gateway: address}).Check(t.Context(), []*poller.Task{task("jmx[a]", nil), task("jmx[c]", own), task("jmx[b]", nil)}, results)
	if got := fmt.Sprintf("%d %s, %d %s, %d", results[0].Outcome, results[0].Text, results[2].Outcome, results[2].Text, results[1].Outcome); got != "1 1, 2 no bean, 2" {
		t.Error(got)
	}
	for _, want := range []string{
		`{"request":"java gateway jmx","jmx_endpoint":"service:jmx:rmi:///jndi/rmi://h:1/jmxrmi","keys":["jmx[a]","jmx[b]"]}`,
		`{"request":"java gateway jmx","jmx_endpoint":"service:jmx:x","username":"u","password":"p","keys":["jmx[c]"]}`,
	} {
		if got := <-requests; got != want {
			t.Errorf("asked %s, want %s", got, want)
		}
	}
	f := func(answer string, outcome poller.Outcome, want string) {
		t.Helper()
		address, _ := startGateway(t, answer)
		results := make([]poller.Result, 1)
		New(Options{Gateway: address}).Check(t.Context(), []*poller.Task{task("jmx[a]", nil)}, results)
		if results[0].Outcome != outcome || !strings.Contains(string(results[0].Text), want) {
			t.Errorf("%s: %d %s, want %d %s", answer, results[0].Outcome, results[0].Text, outcome, want)
		}
	}
	f(`{"response":"failed","error":"refused"}`, poller.Unreachable, "the Java gateway says: refused")
	f(`{"response":"success","data":[]}`, poller.Unreachable, "with 0 values, expected success with 1")
	f(`{`, poller.Unreachable, "cannot be read")
	f("", poller.Unreachable, "cannot be asked")
	New(Options{}).Check(t.Context(), []*poller.Task{task("jmx[a]", nil)}, results[:1])
	if results[0].Outcome != poller.NotSupported || !strings.Contains(string(results[0].Text), "collect.java_gateway") {
		t.Errorf("without a gateway: %s", results[0].Text)
	}
}
