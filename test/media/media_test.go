package media

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// mediaType is one of the configuration as it is read and put back.
type mediaType = object

// importMedia imports Zabbix's media types and returns them as they are kept, by name.
func importMedia(t *testing.T, s *server) map[string]mediaType {
	t.Helper()
	exported := export(t)
	want := exported["zabbix_export"].(object)["media_types"].([]object)
	if len(want) < 30 {
		t.Fatalf("the package has %d webhooks, expected more than 30", len(want))
	}
	s.call(http.MethodPost, "/api/alerting/import", exported, nil)
	var config struct{ Media []mediaType }
	s.call(http.MethodGet, "/api/alerting", nil, &config)
	if len(config.Media) != len(want) {
		t.Fatalf("%d media types were kept of %d", len(config.Media), len(want))
	}
	byName := map[string]mediaType{}
	for _, m := range config.Media {
		byName[m["name"].(string)] = m
	}
	return byName
}

var placeholder = regexp.MustCompile(`^<.*>$`)

// fill gives a media type its proxy, and a value to everything that is to be filled in: an address where the name speaks of one.
func fill(m mediaType, proxy string, values map[string]string) {
	hook := m["zabbix_webhook"].(object)
	hook["allow"] = []string{"127.0.0.1"}
	parameters := hook["parameters"].(object)
	parameters["HTTPProxy"] = proxy
	secrets, _ := m["secrets"].(object)
	give := func(of object, name string) {
		value, ok := values[name]
		switch {
		case ok:
		case strings.Contains(strings.ToLower(name), "url"), strings.Contains(name, "endpoint"):
			value = "https://service.example/"
		default:
			value = "12345678"
		}
		of[name] = value
	}
	for name := range secrets {
		give(secrets, name)
	}
	for name, v := range parameters {
		if _, mine := values[name]; mine || placeholder.MatchString(v.(string)) {
			give(parameters, name)
		}
	}
}

// Every webhook of Zabbix's own is imported, runs, and asks its service.
func TestImport_all(t *testing.T) {
	n := startInternet(t, func(*call) (int, string) { return http.StatusOK, `{}` })
	s := startServer(t, n.authority)
	media := importMedia(t, s)
	var list []mediaType
	for _, m := range media {
		fill(m, n.url, map[string]string{
			"topdesk_api": "https://topdesk.example/", "opsgenie_api": "https://opsgenie.example/",
			"glpi_url": n.url + "/", // its script does not log in through the proxy
		})
		list = append(list, m)
	}
	s.call(http.MethodPut, "/api/alerting", object{"url": "https://page.example", "media": list}, nil)
	for name := range media {
		n.mu.Lock()
		before := len(n.calls)
		n.mu.Unlock()
		var result struct {
			Sent          bool
			Answer, Error string
		}
		s.call(http.MethodPost, "/api/alerting/test", object{"media": name, "to": receiverOf(name)}, &result)
		n.mu.Lock()
		sent := len(n.calls) - before
		n.mu.Unlock()
		if sent == 0 || strings.Contains(result.Error, "ReferenceError") || strings.Contains(result.Error, "is not a function") {
			t.Errorf("%s made %d requests: %s %s", name, sent, result.Error, result.Answer)
		}
	}
}

// receiverOf is an address in the form that a media type wants.
func receiverOf(name string) string {
	switch name {
	case "Github":
		return "owner/repository"
	case "Mattermost", "Rocket.Chat", "Slack":
		return "#ops"
	case "Pushover", "Line", "Express.ms":
		return "u1234567890123456789012345678x"
	case "Brevis.one":
		return "+4912345678"
	}
	return "https://discord.com/api/webhooks/1/x"
}

// The requests of five services for a problem, its acknowledgement and its end, as their APIs want them. The server is killed in between: what
// scripts returned is kept with the problem.
func TestServices(t *testing.T) {
	n := startInternet(t, answerAs)
	s := startServer(t, n.authority)
	media := importMedia(t, s)
	chosen := map[string]map[string]string{
		"Slack": {"bot_token": "xoxb-1"}, "Telegram": {"Token": "77:abc"}, "MS Teams": {"teams_endpoint": "https://org.webhook.office.example/hook/1"}, "PagerDuty": {"token": "routing-1"},
		"Jira": {"jira_url": "https://jira.example/", "jira_user": "bot", "jira_password": "pw12", "jira_project_key": "OPS", "jira_issue_type": "Task"},
	}
	var list, ways []object
	for name, values := range chosen {
		fill(media[name], n.url, values)
		media[name]["group_wait"], media[name]["group_interval"] = "1s", "1s"
		list = append(list, media[name])
		ways = append(ways, object{"media": name, "to": "#ops"})
	}
	s.call(http.MethodPost, "/api/import", warm(), nil)
	s.call(http.MethodPut, "/api/alerting", object{
		"url": "https://page.example", "media": list, "receivers": []object{{"name": "all", "media": ways}},
		"actions": []object{{"name": "tell", "operations": []object{{"receivers": []string{"all"}}}, "update": []object{{"involved": true}}}},
	}, nil)
	s.send("web", "temperature", "42")
	until(t, "the services know of the problem", func() bool {
		return len(n.of("slack.com")) == 2 && len(n.of("api.telegram.org")) == 1 && len(n.of("events.pagerduty.com")) == 1 &&
			len(n.of("org.webhook.office.example")) == 1 && len(n.of("jira.example")) == 1
	})
	var found problem
	until(t, "the problem has a link", func() bool {
		list := s.problems()
		if len(list) == 1 {
			found = list[0]
		}
		return len(list) == 1 && len(found.Links) == 1 && strings.Contains(fmt.Sprint(found.Tags), "__message_ts_#ops")
	})
	if l := found.Links[0]; l.Name != "Jira: OPS-7" || l.URL != "https://jira.example/browse/OPS-7" {
		t.Errorf("link %+v", l)
	}
	s.kill()
	s.start()
	s.call(http.MethodPost, "/api/problems/"+found.EventID+"/acknowledge", object{"message": "on it"}, nil)
	until(t, "the services know of the acknowledgement", func() bool {
		return len(n.of("slack.com")) == 3 && len(n.of("jira.example")) == 3 && len(n.of("events.pagerduty.com")) == 2 && len(n.of("org.webhook.office.example")) == 2 &&
			len(n.of("api.telegram.org")) == 2
	})
	s.send("web", "temperature", "20")
	until(t, "the services know of the end", func() bool {
		return len(n.of("slack.com")) == 4 && len(n.of("jira.example")) == 5 && len(n.of("events.pagerduty.com")) == 3 && len(n.of("org.webhook.office.example")) == 3 &&
			len(n.of("api.telegram.org")) == 3
	})
	checkCalls(t, n, found.EventID)
}

// warm is a host with a trigger.
func warm() object {
	return object{"zabbix_export": object{
		"version": "6.0", "groups": []object{{"uuid": "4f1c6a0f6a5c4c1d8b0f3a7de2b9c001", "name": "Examples"}},
		"hosts": []object{{
			"host": "web", "name": "Web", "groups": []object{{"name": "Examples"}},
			"interfaces": []object{{"ip": "192.0.2.7", "interface_ref": "if1"}},
			"items": []object{{
				"name": "Temperature", "type": "TRAP", "key": "temperature", "delay": "0", "value_type": "FLOAT",
				"triggers": []object{{"expression": "last(/web/temperature)>40", "name": "Too warm", "priority": "HIGH", "description": "Open a window.", "tags": []object{{"tag": "scope", "value": "room"}}}},
			}},
		}},
	}}
}

// answerAs answers as the services do.
func answerAs(c *call) (int, string) {
	ok := func(good bool, status int, body string) (int, string) {
		if !good {
			return http.StatusUnauthorized, `{"ok":false,"error":"invalid_auth"}`
		}
		return status, body
	}
	bearer := c.header.Get("Authorization") == "Bearer xoxb-1"
	switch c.host + strings.Split(c.path, "?")[0] {
	case "slack.com/api/chat.postMessage", "slack.com/api/chat.update":
		return ok(bearer, http.StatusOK, `{"ok":true,"channel":"C123","ts":"1503435956.000247"}`)
	case "slack.com/api/chat.getPermalink":
		return ok(bearer, http.StatusOK, `{"ok":true,"permalink":"https://org.slack.com/archives/C123/p1"}`)
	case "api.telegram.org/bot77:abc/sendMessage":
		return http.StatusOK, `{"ok":true,"result":{"message_id":1}}`
	case "events.pagerduty.com/v2/enqueue":
		return http.StatusAccepted, `{"status":"success","message":"Event processed","dedup_key":"x"}`
	case "org.webhook.office.example/hook/1":
		return http.StatusOK, "1"
	}
	basic := c.header.Get("Authorization") == "Basic "+base64.StdEncoding.EncodeToString([]byte("bot:pw12"))
	switch c.method + " " + c.host + c.path {
	case "POST jira.example/rest/api/latest/issue":
		return ok(basic, http.StatusCreated, `{"id":"10007","key":"OPS-7"}`)
	case "PUT jira.example/rest/api/latest/issue/OPS-7":
		return ok(basic, http.StatusNoContent, "")
	case "POST jira.example/rest/api/latest/issue/OPS-7/comment":
		return ok(basic, http.StatusCreated, `{"id":"1"}`)
	}
	return http.StatusNotFound, `{"ok":false,"description":"not found"}`
}

func checkCalls(t *testing.T, n *internet, event string) {
	t.Helper()
	equal := func(c call, want string, path ...string) {
		t.Helper()
		if got := c.text(t, path...); got != want {
			t.Errorf("%s %s%s: %v is %q, want %q", c.method, c.host, c.path, path, got, want)
		}
	}
	slack := n.of("slack.com")
	equal(slack[0], "#ops", "channel")
	equal(slack[0], "#E97659", "attachments", "color")
	if link := slack[0].text(t, "attachments", "title_link"); !strings.HasPrefix(link, "https://page.example/tr_events.php?triggerid=") || !strings.HasSuffix(link, "&eventid="+event) {
		t.Errorf("slack's link is %s", link)
	}
	if slack[1].path != "/api/chat.getPermalink?channel=C123&message_ts=1503435956.000247" || slack[3].path != "/api/chat.update" {
		t.Errorf("slack was asked %s and %s", slack[1].path, slack[3].path)
	}
	equal(slack[2], "1503435956.000247", "thread_ts") // the acknowledgement answers the message
	equal(slack[3], "1503435956.000247", "ts")        // the end changes it
	equal(slack[3], "C123", "channel")
	telegram := n.of("api.telegram.org")
	equal(telegram[0], "#ops", "chat_id")
	if text := telegram[0].text(t, "text"); !strings.Contains(text, "Too warm") || !strings.Contains(text, "Web") {
		t.Errorf("telegram was told %q", text)
	}
	teams := n.of("org.webhook.office.example")
	equal(teams[0], "E97659", "themeColor")
	equal(teams[0], "Open a window.", "sections", "text")
	equal(teams[2], "009900", "themeColor")
	for i, action := range []string{"trigger", "acknowledge", "resolve"} {
		c := n.of("events.pagerduty.com")[i]
		equal(c, action, "event_action")
		equal(c, "routing-1", "routing_key")
		equal(c, event, "dedup_key")
	}
	equal(n.of("events.pagerduty.com")[0], "error", "payload", "severity")
	equal(n.of("events.pagerduty.com")[0], "Web : 192.0.2.7", "payload", "source")
	jira := n.of("jira.example")
	equal(jira[0], "OPS", "fields", "project", "key")
	equal(jira[0], "Task", "fields", "issuetype", "name")
	if labels := jira[0].text(t, "fields", "labels"); labels != "[scope:room]" {
		t.Errorf("labels %s", labels)
	}
	if comment := jira[2].text(t, "body"); !strings.Contains(comment, "acknowledged") || !strings.Contains(comment, "on it") {
		t.Errorf("the comment of the acknowledgement is %q", comment)
	}
	if comment := jira[4].text(t, "body"); !strings.Contains(comment, "Too warm") {
		t.Errorf("the comment of the end is %q", comment)
	}
}
