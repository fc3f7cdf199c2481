package alert

import (
	"os"
	"strings"
	"testing"
	"time"
)

func TestImportZabbix(t *testing.T) {
	text, err := os.ReadFile("testdata/media-6.0.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, remarks, err := ImportZabbix(text)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := compile(c, &Options{}); err != nil {
		t.Fatal(err)
	}
	if len(c.Media) != 4 {
		t.Fatalf("media %+v, want 4", c.Media)
	}
	mail, script, hook := c.Media[0], c.Media[1], c.Media[2]
	if m := mail.Mail; m == nil || m.Server != "mail.example.com:587" || m.Security != "starttls" || m.From != "zabbix@example.com" || m.User != "zabbix" || m.HTML ||
		mail.Problem.Subject != "Problem: {EVENT.NAME}" || mail.Recovery.Message == "" || mail.Update.Subject == "" || mail.Attempts != 5 || mail.Sessions != 3 {
		t.Errorf("mail %+v %+v", mail, mail.Mail)
	}
	if script.Script == nil || script.Script.Name != "notify.sh" || len(script.Script.Arguments) != 2 || !script.Disabled {
		t.Errorf("script %+v", script)
	}
	if z := hook.Zabbix; z == nil || z.Parameters["URL"] != "{ALERT.SENDTO}" || !strings.Contains(z.Script, "HttpRequest") || z.Timeout != Duration(10*time.Second) || !z.Tags ||
		!hook.Ticket || z.Menu == nil || z.Menu.Name != "Chat: {EVENT.TAGS.chat_id}" || z.Parameters["bot_token"] != "{SECRET.bot_token}" || hook.Secrets["bot_token"] != hidden ||
		z.Parameters["chat_endpoint"] != "{SECRET.chat_endpoint}" || hook.Secrets["api_password"] != "pw" || z.Parameters["color"] != "<red>" {
		t.Errorf("webhook %+v %+v", hook, hook.Zabbix)
	}
	plain := c.Media[3]
	if plain.Ticket || plain.Zabbix.Tags || plain.Zabbix.Menu != nil || plain.Zabbix.Timeout != 0 {
		t.Errorf("webhook %+v %+v", plain, plain.Zabbix)
	}
	all := strings.Join(remarks, "\n")
	for _, want := range []string{`"Email": the export has no password`, `"Notify": put the script`, `"Chat": fill in bot_token, chat_endpoint, color`, `"Chat": each problem is sent by itself`, `"Pager": it is disabled in the export`, `"Pager": timeout is "soon"; 30s is used`, `"Pager": menu: the url has no`, `"Text": type "SMS" is not supported`, "DISCOVERY"} {
		if !strings.Contains(all, want) {
			t.Errorf("remarks:\n%s\nwant %q", all, want)
		}
	}
	for _, bad := range []string{"", "a: b", "{", strings.Repeat("x", MaxConfigBytes+1)} {
		if _, _, err := ImportZabbix([]byte(bad)); err == nil {
			t.Errorf("%.20q was taken for an export", bad)
		}
	}
}
