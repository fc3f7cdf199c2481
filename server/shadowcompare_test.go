package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"tidemark/confdb"
	"tidemark/zabbixdb"
)

// An item without hours on either side is not alike, and hours from before the first import are not blamed on the agent alone.
func TestShadowCompare_unknownTime(t *testing.T) {
	r := run(t, t.TempDir())
	r.importText(zabbixLinux)
	hour := time.Now().Truncate(time.Hour).Add(-2 * time.Hour).UnixNano()
	compare := func(hours string) *compared {
		t.Helper()
		body := fmt.Sprintf(`{"from":%d,"to":%d,"tolerance":0,"problems":null,"items":[{"host":"web1","key":"proc.num[,,zomb]","hours":%s}]}`, hour, hour+int64(time.Hour), hours)
		out := &compared{}
		if err := json.Unmarshal([]byte(r.call("POST", "/api/shadow/compare", body, http.StatusOK)), out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	if out := compare("[]"); out.EmptyItems != 1 || out.SameItems != 0 || len(out.Items) != 0 {
		t.Errorf("without hours on either side: %+v", out)
	}
	there := fmt.Sprintf(`[{"at":%d,"count":60,"min":0,"avg":0,"max":0}]`, hour/int64(time.Second))
	out := compare(there)
	if out.EmptyItems != 0 || len(out.Items) != 1 || !strings.Contains(out.Items[0].Reason, "import zabbix history") || !strings.Contains(out.Items[0].Reason, "ServerActive") {
		t.Errorf("an hour from before the import: %+v", out)
	}
}

// An import without actions says that nothing keeps alerts back.
func TestImportSettings_withoutActions(t *testing.T) {
	r := run(t, t.TempDir())
	body, err := json.Marshal(&zabbixdb.Settings{Proxies: []zabbixdb.Proxy{}, Hosts: []zabbixdb.HostTLS{}, UserGroups: []zabbixdb.UserGroup{}, Remarks: []zabbixdb.Remark{}, Users: []zabbixdb.User{}})
	if err != nil {
		t.Fatal(err)
	}
	for _, silenced := range []bool{false, true} {
		report := &confdb.Report{}
		if err := json.Unmarshal([]byte(r.call("POST", "/api/import/zabbix", string(body), http.StatusOK)), report); err != nil {
			t.Fatal(err)
		}
		said := false
		for _, m := range report.Remarks {
			said = said || strings.Contains(m.Reason, "shadow mode was not begun")
		}
		if said == silenced {
			t.Errorf("shadow mode on: %t; the report says %+v", silenced, report.Remarks)
		}
		r.call("POST", "/api/shadow", "", http.StatusOK)
	}
}
