package trapper

import (
	"net"
	"testing"

	"tidemark/wire/zbx"
)

// FuzzServe gives a server any body and checks that the counts of its answers add up and that nothing stays held.
func FuzzServe(f *testing.F) {
	f.Add([]byte(`{"request":"sender data","data":[{"host":"h1","key":"trap.f","value":"3","clock":1}]}`))
	f.Add([]byte(agentData(token, `{"id":1,"itemid":12,"value":"1"}`, `{"id":2,"itemid":13,"value":"x","lastlogsize":3}`)))
	f.Add([]byte(`{"request":"agent data","tidemark":1,"host":"h1","declare":[{"key":"a"}],"data":[{"id":1,"key":"a","value":"1"}],"session":"` + token + `"}`))
	f.Add([]byte(`{"request":"active checks","host":"h1","version":"7.0","session":"` + token + `","config_revision":1,"tidemark":1}`))
	f.Add([]byte("h1:trap.f:1"))
	f.Add([]byte("ZBX_GET_ACTIVE_CHECKS\nh1\n"))
	items := testItems()
	s := New(Options{Items: items, Sink: discard{}, Declarer: &declarer{items, 100}, Registrar: &registry{items: items}})
	c := &conn{}
	c.Conn, _ = net.Pipe()
	f.Fuzz(func(t *testing.T, body []byte) {
		w := newWorker(s)
		s.serve(t.Context(), c, w, body)
		if len(w.answer) > 0 && w.answer[0] == '{' {
			a, err := zbx.DecodeAnswer(w.answer)
			if err != nil {
				t.Fatalf("the answer %q cannot be read: %v", w.answer, err)
			}
			if a.HasCounts && a.Counts.Processed+a.Counts.Failed != a.Counts.Total {
				t.Fatalf("counts of %q do not add up", w.answer)
			}
		}
		for _, held := range s.sessions.byKey {
			if held.holders != 0 || len(held.lock) != 0 {
				t.Fatalf("session %v is still held", held.key)
			}
		}
	})
}
