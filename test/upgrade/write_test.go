package upgrade

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tidemark/wire/zbx"
)

// export has an item of each type and a trigger.
const export = `{"zabbix_export":{"version":"6.0","groups":[{"uuid":"0123456789ab4def8123456789abcdef","name":"Tests"}],"hosts":[{"host":"old","name":"Old",
"groups":[{"name":"Tests"}],"items":[
{"name":"Float","type":"TRAP","key":"float","delay":"0","value_type":"FLOAT","triggers":[{"expression":"last(/old/float)>10","name":"Too much","priority":"HIGH"}]},
{"name":"Unsigned","type":"TRAP","key":"unsigned","delay":"0"},
{"name":"Char","type":"TRAP","key":"char","delay":"0","value_type":"CHAR","trends":"0"},
{"name":"Text","type":"TRAP","key":"text","delay":"0","value_type":"TEXT","trends":"0"},
{"name":"Log","type":"TRAP","key":"log","delay":"0","value_type":"LOG","trends":"0"}]}]}}`

// write makes a data folder with the present version and puts it into testdata.
func write(t *testing.T, name string) {
	t.Helper()
	dir := t.TempDir()
	s := start(t, filepath.Join(dir, "data"))
	answer, err := http.Post("http://"+s.http+"/api/import", "application/json", strings.NewReader(export))
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	from := time.Now().Add(-time.Hour).Unix()
	var rows []string
	for i := range 400 {
		for key, v := range map[string]string{
			"float": fmt.Sprintf("%d.%02d", i/20, i%100), "unsigned": fmt.Sprint(uint64(18446744073709551615) - uint64(i*i)), "char": fmt.Sprint("state ", i/50),
			"text": fmt.Sprint("text ", i), "log": fmt.Sprint("line ", i),
		} {
			rows = append(rows, fmt.Sprintf(`{"host":"old","key":%q,"value":%q,"clock":%d,"ns":%d}`, key, v, from+int64(i*7), i*1000))
		}
	}
	if got := send(t, s.trap, `{"request":"sender data","data":[`+strings.Join(rows, ",")+`]}`); !strings.Contains(got, "processed: 2000; failed: 0") {
		t.Fatalf("the sender is answered %s", got)
	}
	<-time.After(3 * time.Second)
	text, err := json.MarshalIndent(s.content(), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	s.kill()
	if err := os.WriteFile(filepath.Join("testdata", name+".json"), text, 0o644); err != nil {
		t.Fatal(err)
	}
	to, err := filepath.Abs(filepath.Join("testdata", name+".tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("tar", "-C", dir, "-czf", to, "data").CombinedOutput(); err != nil {
		t.Fatalf("pack the folder: %v %s", err, out)
	}
}

func send(t *testing.T, address, body string) string {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write(zbx.AppendFrame(nil, []byte(body))); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}
