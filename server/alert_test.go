package server

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// call sends a body to the API and returns the answer.
func (r *running) call(method, path, body string, want int) string {
	r.t.Helper()
	request, err := http.NewRequest(method, r.http+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		r.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != want {
		r.t.Fatalf("%s %s: %s %v %s, want %d", method, path, answer.Status, err, text, want)
	}
	return string(text)
}

// TestServer_alerts takes a problem from a value to a webhook, with an acknowledgement and a restart before the recovery.
func TestServer_alerts(t *testing.T) {
	type message struct{ Subject, Host, Status, ID, Token string }
	messages := make(chan message, 10)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var m message
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			t.Error(err)
		}
		m.Token = r.Header.Get("Authorization")
		messages <- m
	}))
	defer hook.Close()
	expect := func(want message) {
		t.Helper()
		select {
		case got := <-messages:
			if got != want {
				t.Errorf("message %+v, want %+v", got, want)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("no message came, want %+v", want)
		}
	}
	dir := t.TempDir()
	r := run(t, dir)
	r.importExport()
	config := fmt.Sprintf(`
media:
  - name: tickets
    ticket: true
    webhook:
      url: %s/hook
      headers: {Authorization: "Bearer {SECRET.TOKEN}"}
      body: {subject: "{ALERT.SUBJECT}", host: "{HOST.NAME}", status: "{EVENT.STATUS}", id: "{EVENT.ID}"}
      allow: [127.0.0.0/8]
    secrets: {TOKEN: hush}
    problem: {subject: "{EVENT.NAME} at {ITEM.VALUE}"}
    update: {subject: "{USER.FULLNAME}: {EVENT.UPDATE.MESSAGE}"}
    recovery: {subject: "over: {EVENT.NAME}"}
receivers: [{name: queue, media: [{media: tickets, to: ops}]}]
actions: [{name: all, conditions: [{type: host_group, value: Tests}], operations: [{receivers: [queue]}], update: [{involved: true}]}]
`, hook.URL)
	r.call(http.MethodPut, "/api/alerting", config, http.StatusOK)
	if shown := r.call(http.MethodGet, "/api/alerting", "", http.StatusOK); strings.Contains(shown, "hush") || !strings.Contains(shown, `"name":"tickets"`) {
		t.Errorf("the configuration is shown as %s", shown)
	}
	if got := r.call(http.MethodPost, "/api/alerting/test", `{"media":"tickets","to":"me","subject":"try"}`, http.StatusOK); !strings.Contains(got, `"sent":true`) {
		t.Errorf("the test is answered %s", got)
	}
	expect(message{"try", "Test", "PROBLEM", "0", "Bearer hush"})

	now := time.Now().Unix()
	r.sender("42.5", now-2)
	expect(message{"Too warm on Web at 42.5", "Web", "PROBLEM", "1", "Bearer hush"})
	r.call(http.MethodPost, "/api/problems/1/acknowledge", `{"author":"Ann","message":"on it"}`, http.StatusOK)
	expect(message{"Ann: on it", "Web", "PROBLEM", "1", "Bearer hush"})
	r.stop()
	r = run(t, dir)
	r.sender("3", now-1)
	expect(message{"over: Too warm on Web", "Web", "OK", "1", "Bearer hush"})
	var list struct {
		Alerts []struct{ Kind, State, Problem, To string }
	}
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); <-time.After(10 * time.Millisecond) {
		if r.get("/api/alerts?state=sent", &list); len(list.Alerts) == 3 {
			break
		}
	}
	if len(list.Alerts) != 3 || list.Alerts[0].Kind != "recovery" || list.Alerts[2].Kind != "problem" {
		t.Errorf("alerts %+v", list.Alerts)
	}
	r.call(http.MethodPut, "/api/alerting", "actions: [{name: x, operations: [{receivers: [nobody]}]}]", http.StatusUnprocessableEntity)
	r.call(http.MethodDelete, "/api/alerting/action/none", "", http.StatusNotFound)
	r.call(http.MethodPost, "/api/problems/99/acknowledge", `{}`, http.StatusNotFound)
	r.call(http.MethodPost, "/api/problems/18446744073709551615/acknowledge", `{}`, http.StatusBadRequest)
	r.call(http.MethodPost, "/api/problem-updates", `{"event_ids":["9223372036854775808"],"close":true}`, http.StatusBadRequest)
	r.call(http.MethodGet, "/api/problems?host=9223372036854775808", "", http.StatusBadRequest)
	r.call(http.MethodDelete, "/api/alerting/action/all", "", http.StatusOK)
}
