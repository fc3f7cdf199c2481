package server

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"
)

// opData returns what is shown beside the only problem, by REST and by JSON-RPC's problem.get and event.get.
func (r *running) opData() string {
	r.t.Helper()
	var list struct{ Problems []struct{ Opdata string } }
	r.get("/api/problems?open=false", &list)
	var said []string
	for _, p := range list.Problems {
		said = append(said, p.Opdata)
	}
	for _, method := range []string{"problem.get", "event.get"} {
		body := `{"jsonrpc":"2.0","method":"` + method + `","params":{"output":["opdata"],"recent":true},"id":1}`
		if method == "event.get" {
			body = strings.Replace(body, `,"recent":true`, "", 1)
		}
		answer, err := http.Post(r.http+"/api_jsonrpc.php", "application/json-rpc", bytes.NewReader([]byte(body)))
		if err != nil {
			r.t.Fatal(err)
		}
		var a struct{ Result []struct{ Opdata string } }
		err = json.NewDecoder(answer.Body).Decode(&a)
		_ = answer.Body.Close()
		if err != nil || len(a.Result) != 1 {
			r.t.Fatalf("%s is answered %+v: %v", method, a, err)
		}
		said = append(said, a.Result[0].Opdata)
	}
	return strings.Join(said, "; ")
}

// TestOpData_now: an open problem tells the value of now beside that of its begin, also after a restart; one that is over tells its begin.
func TestOpData_now(t *testing.T) {
	dir := t.TempDir()
	now := time.Now().Unix()
	r := run(t, dir)
	with := strings.Replace(export, `"opdata":"{ITEM.VALUE}"`, `"opdata":"{ITEM.VALUE} then, {ITEM.LASTVALUE} now"`, 1)
	answer, err := http.Post(r.http+"/api/import", "application/json", strings.NewReader(with))
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	wait := func(want string) {
		t.Helper()
		want = want + "; " + want + "; " + want
		got := ""
		for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); {
			if got = r.opData(); got == want {
				return
			}
			<-time.After(20 * time.Millisecond)
		}
		t.Fatalf("beside the problem stands %q, want %q", got, want)
	}
	r.sender("42.5", now-9)
	r.problem(true)
	wait("42.5 then, 42.5 now")
	r.sender("77", now-8)
	wait("42.5 then, 77 now")
	r.stop()

	r = run(t, dir)
	r.problem(true)
	wait("42.5 then, 77 now")
	r.sender("3", now-7)
	r.problem(false)
	wait("42.5 then, 42.5 now")
}
