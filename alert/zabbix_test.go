package alert

import (
	"os"
	"strings"
	"testing"
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
	if len(c.Media) != 3 {
		t.Fatalf("media %+v, want 3", c.Media)
	}
	mail, script, hook := c.Media[0], c.Media[1], c.Media[2]
	if m := mail.Mail; m == nil || m.Server != "mail.example.com:587" || m.Security != "starttls" || m.From != "zabbix@example.com" || m.User != "zabbix" || m.HTML ||
		mail.Problem.Subject != "Problem: {EVENT.NAME}" || mail.Recovery.Message == "" || mail.Update.Subject == "" || mail.Attempts != 5 || mail.Sessions != 3 {
		t.Errorf("mail %+v %+v", mail, mail.Mail)
	}
	if script.Script == nil || script.Script.Name != "notify.sh" || len(script.Script.Arguments) != 2 || !script.Disabled {
		t.Errorf("script %+v", script)
	}
	if hook.Zabbix == nil || hook.Zabbix.Parameters["URL"] != "{ALERT.SENDTO}" || !strings.Contains(hook.Zabbix.Script, "HttpRequest") {
		t.Errorf("webhook %+v", hook)
	}
	all := strings.Join(remarks, "\n")
	for _, want := range []string{`"Email": the export has no password`, `"Notify": put the script`, `"Chat": webhooks in JavaScript are kept but not run`, `"Text": type "SMS" is not supported`, "DISCOVERY"} {
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
