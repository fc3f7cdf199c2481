package server

import (
	"net/http"
	"testing"
)

// A global regular expression is made, tried, used by a trigger, changed and deleted, while the server runs.
func TestRegexps_story(t *testing.T) {
	r := run(t, t.TempDir())
	const one = "/api/regexps/Errors"
	r.ask(http.MethodPut, one, `{"expressions":[{"expression":"(","expression_type":"result_true"}]}`, nil, http.StatusBadRequest)
	r.ask(http.MethodPut, one, `{"name":"Other","expressions":[]}`, nil, http.StatusBadRequest)
	r.ask(http.MethodPut, one, `{"expression":"x"}`, nil, http.StatusBadRequest)
	r.ask(http.MethodPut, one, `{"expressions":[{"expression":"error,fatal","expression_type":"any_included","exp_delimiter":","}]}`, nil, http.StatusOK)
	var tested regexpTested
	test := `{"text":"a Fatal one","expressions":[{"expression":"fatal","expression_type":"included"},{"expression":"^a","expression_type":"result_false"}]}`
	r.ask(http.MethodPost, "/api/regexp-test", test, &tested, http.StatusOK)
	if tested.Matches || len(tested.Each) != 2 || !tested.Each[0] || tested.Each[1] {
		t.Errorf("tested %+v", tested)
	}
	r.ask(http.MethodPost, "/api/regexp-test", `{"text":"x","expressions":[{"expression":"(","expression_type":"result_true"}]}`, nil, http.StatusBadRequest)
	var list regexpList
	r.ask(http.MethodGet, "/api/regexps", "", &list, http.StatusOK)
	if len(list.Regexps) != 6 || list.Regexps[0].Name != "Errors" || list.Regexps[0].Default || !list.Regexps[1].Default {
		t.Errorf("list %+v", list)
	}
	r.ask(http.MethodPost, "/api/import", `{"zabbix_export":{"version":"6.0","groups":[{"uuid":"0b6f8a52c9a14c0c8d4d0f3e5b7a9c11","name":"G"}],"hosts":[{"host":"h","name":"h",
		"groups":[{"name":"G"}],"items":[{"name":"k","type":"TRAP","key":"k","delay":"0","value_type":"TEXT",
		"triggers":[{"expression":"find(/h/k,,\"regexp\",\"@Errors\")=1","name":"error"},{"expression":"find(/h/k,,\"regexp\",\"@None\")=1","name":"none"}]}]}]}}`, nil, http.StatusOK)
	state := func(name string) (out struct{ State, Error, Expression string }) {
		t.Helper()
		var answer struct {
			Triggers []struct{ Name, State, Error, Expression string }
		}
		r.ask(http.MethodGet, "/api/triggers", "", &answer, http.StatusOK)
		for _, found := range answer.Triggers {
			if found.Name == name {
				out.State, out.Error, out.Expression = found.State, found.Error, found.Expression
			}
		}
		return out
	}
	if got := state("error"); got.Expression != `find(/h/k,,"regexp","(?i:error|fatal)")=1` || got.Error != "" {
		t.Errorf("trigger %+v", got)
	}
	if got := state("none"); got.Error == "" {
		t.Errorf("trigger with a name that is not known: %+v", got)
	}
	r.ask(http.MethodPut, one, `{"expressions":[{"expression":"^E","expression_type":"result_true","case_sensitive":true}]}`, nil, http.StatusOK)
	if got := state("error"); got.Expression != `find(/h/k,,"regexp","(?-i:^E)")=1` {
		t.Errorf("trigger after a change %+v", got)
	}
	r.ask(http.MethodDelete, one, "", nil, http.StatusOK)
	r.ask(http.MethodDelete, one, "", nil, http.StatusNotFound)
	if got := state("error"); got.Expression != `find(/h/k,,"regexp","@Errors")=1` {
		t.Errorf("trigger after the deletion %+v", got)
	}
}
