package trapper

import (
	"bytes"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"tidemark/wire/zbx"
)

func TestHostile_framesAreCountedAndClosed(t *testing.T) {
	h := start(t, Options{MaxBodyBytes: 1 << 20})
	var w zbx.FrameWriter
	damaged := w.AppendCompressed(nil, []byte(`{"request":"sender data","data":[]}`))
	damaged[18] ^= 0xFF
	for name, test := range map[string]struct {
		bytes  []byte
		reason string
	}{
		"TLS":         {[]byte{0x16, 3, 1, 0, 5, 1, 0, 0, 1, 0}, tlsUnsupported},
		"4 GiB":       {append(zbx.AppendHeader(nil, zbx.Header{BodyBytes: 1<<32 - 1}), "abc"...), "too_large"},
		"large":       {zbx.AppendHeader(nil, zbx.Header{Flags: zbx.FlagLarge, BodyBytes: 1 << 40}), "too_large"},
		"bomb":        {zbx.AppendHeader(nil, zbx.Header{Flags: zbx.FlagCompressed, BodyBytes: 50, InflatedBytes: 1 << 31}), "too_large"},
		"flags":       {[]byte("ZBXD\xff\x00\x00\x00\x00\x00\x00\x00\x00"), "flags"},
		"cut":         {[]byte("ZBXD\x01\x05\x00\x00\x00\x00\x00\x00\x00ab"), "truncated"},
		"zlib":        {damaged, "zlib"},
		"empty frame": {zbx.AppendFrame(nil, nil), badForm},
	} {
		before := h.refused(test.reason)
		if got := h.send(test.bytes); len(got) != 0 {
			t.Errorf("%s: answered %q", name, got)
		}
		if h.refused(test.reason) != before+1 {
			t.Errorf("%s is not counted as %s", name, test.reason)
		}
	}
	if used := h.s.budget.inUse(); used != 0 {
		t.Errorf("%d bytes of the budget are not given back", used)
	}
}

func TestHostile_requests(t *testing.T) {
	h := start(t, Options{})
	for request, want := range map[string]string{
		`{"request":"proxy config","host":"p"}`: `{"response":"failed","info":"unsupported request 'proxy config'"}`,
		`{"data":[]}`:                           `{"response":"failed","info":"unsupported request ''"}`,
		`{"request":"sender data","data":[{]}`:  `{"response":"failed","info":"cannot read the request: JSON at byte 34: expected a name in double quotes"}`,
		`[]`:                                    `{"response":"failed","info":"cannot read the request: JSON at byte 0: expected '{' at the start of a request"}`,
		`<req></req>`:                           `{"response":"failed","info":"cannot read the request: JSON at byte 0: expected '{' at the start of a request"}`,
		`{"request":"` + strings.Repeat("x", 300) + `"}`: `{"response":"failed","info":"unsupported request '` + strings.Repeat("x", 255) + `…'"}`,
	} {
		if got := h.ask(request); got != want {
			t.Errorf("%.60s: answer %s, expected %s", request, got, want)
		}
	}
	for request, want := range map[string]zbx.Counts{
		`{"request":"sender data"}`:                {},
		`{"request":"sender data","data":{}}`:      {},
		`{"request":"sender data","data":[1,"a"]}`: {Failed: 2, Total: 2},
		`{"request":"agent data","host":"h1"}`:     {},
		`{"request":"agent data","data":[{"host":"h1","key":"agent.ping","value":"1"},{"key":"agent.ping","value":"2"}]}`: {Processed: 1, Failed: 1, Total: 2},
	} {
		if got := h.counts(request); got != want {
			t.Errorf("%s: %+v, expected %+v", request, got, want)
		}
	}
}

func TestHostile_mirrorsCompression(t *testing.T) {
	h := start(t, Options{})
	var w zbx.FrameWriter
	got := h.send(w.AppendCompressed(nil, []byte(`{"request":"sender data","data":[]}`)))
	var fr zbx.FrameReader
	header, body, err := fr.Read(bytes.NewReader(got))
	if err != nil || !header.Compressed() || !strings.Contains(string(body), "total: 0") {
		t.Errorf("header %+v, body %s, %v", header, body, err)
	}
}

func TestHostile_slowPeersAreCutOff(t *testing.T) {
	h := start(t, Options{FirstByteTimeout: 20 * time.Millisecond, ReadTimeout: 20 * time.Millisecond})
	for _, beginning := range []string{"", "Z", "ZBXD\x01\x05\x00", "h1:trap"} {
		c, err := net.Dial("tcp", h.addr)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, beginning); err != nil {
			t.Fatal(err)
		}
		if got, _ := io.ReadAll(c); len(got) != 0 {
			t.Errorf("%q: answered %q", beginning, got)
		}
		c.Close()
	}
	if got := h.refused(timedOut); got != 4 {
		t.Errorf("%d connections timed out, expected 4", got)
	}
}

func TestHostile_fullServerMakesRoom(t *testing.T) {
	h := start(t, Options{MaxConnections: 2})
	for range 2 {
		c, err := net.Dial("tcp", h.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, "ZBXD"); err != nil {
			t.Fatal(err)
		}
	}
	if got := h.counts(`{"request":"sender data","data":[{"host":"h1","key":"trap.f","value":"1"}]}`); got.Processed != 1 {
		t.Errorf("counts %+v", got)
	}
	if h.refused(evicted) == 0 {
		t.Error("no connection was counted as evicted")
	}
}

func TestHostile_memoryIsBounded(t *testing.T) {
	sink := &fakeSink{hold: true, puts: make(chan struct{}, 10)}
	h := start(t, Options{Sink: sink, MaxInFlightBytes: 200 << 10, FirstByteTimeout: 50 * time.Millisecond})
	request := `{"request":"sender data","data":[{"host":"h1","key":"trap.t","value":"` + strings.Repeat("x", 100<<10) + `"}]}`
	first := make(chan string, 1)
	go func() { first <- h.ask(request) }()
	<-sink.puts
	if got := h.ask(request); got != "" {
		t.Errorf("a request over the limit was answered: %s", got)
	}
	if h.refused(noMemory) != 1 {
		t.Error("the request is not counted")
	}
	sink.release(nil)
	if got := <-first; !strings.Contains(got, "processed: 1") {
		t.Errorf("first request: %s", got)
	}
}

func TestClose_answersWhatIsStored(t *testing.T) {
	sink := &fakeSink{hold: true, puts: make(chan struct{}, 10)}
	h := start(t, Options{Sink: sink})
	idle, err := net.Dial("tcp", h.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	answer := make(chan string, 1)
	go func() {
		answer <- h.ask(`{"request":"sender data","data":[{"host":"h1","key":"trap.f","value":"1"}]}`)
	}()
	<-sink.puts
	closed := make(chan error, 1)
	go func() { closed <- h.s.Close() }()
	if _, err := idle.Read(make([]byte, 1)); err == nil {
		t.Error("an idle connection was not closed")
	}
	sink.release(nil)
	if got := <-answer; !strings.Contains(got, "processed: 1") {
		t.Errorf("answer while closing: %q", got)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", h.addr); err == nil {
		t.Error("the port is still open")
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := h.s.Serve(t.Context(), ln); err == nil {
		t.Error("Serve after Close gave no error")
	}
}

// TestHostile_listsOfProxies has a list of many short entries refused before they take many times its room.
func TestHostile_listsOfProxies(t *testing.T) {
	long := []byte("[" + strings.Repeat("{},", 10*maxProxyRows) + "{}]")
	var states []ProxyInterface
	if err := proxyList(long, &states); err == nil || !strings.Contains(err.Error(), "more than 100000 entries") || cap(states) > 2*maxProxyRows {
		t.Errorf("%v, room for %d", err, cap(states))
	}
	for text, want := range map[string]int{"": 0, "[]": 0, `[{"interfaceid":1,"available":1},{}]`: 2} {
		var states []ProxyInterface
		if err := proxyList([]byte(text), &states); err != nil || len(states) != want {
			t.Errorf("%s: %v, %d entries", text, err, len(states))
		}
	}
	for _, text := range []string{`[1]`, `[{"available":"x"}]`, `[{}`} {
		if err := proxyList([]byte(text), &states); err == nil {
			t.Errorf("%s is taken", text)
		}
	}
}
