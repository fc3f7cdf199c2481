package zabbix

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"tidemark/test/freeport"
	"tidemark/test/launch"
)

// patience is how long a test waits for something that must come.
const patience = 90 * time.Second

// startServer starts the program with an empty data folder and returns the address of its API and that for senders.
func startServer(t *testing.T, program string) (httpAddress, trapper string) {
	t.Helper()
	dir := t.TempDir()
	httpAddress, trapper = freeport.Address(t), freeport.Address(t)
	config := filepath.Join(dir, "tidemark.yaml")
	text := fmt.Sprintf("data: %s/data\nhttp: {listen: %q}\nstorage: {disk_space: 1GiB}\n", dir, httpAddress)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(dir, "server.log"))
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(program, "server", "--config", config, "--trapper", trapper)
	c.Stdout, c.Stderr = log, log
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
		_ = c.Wait()
		_ = log.Close()
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("the server:\n%s", text[max(0, len(text)-4000):])
		}
	})
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		answer, err := http.Get("http://" + httpAddress + "/-/ready")
		if err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return httpAddress, trapper
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("the server is not ready: %v", err)
		}
	}
}

func post(t *testing.T, url, body string) {
	t.Helper()
	answer, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, _ := io.ReadAll(answer.Body); answer.StatusCode != http.StatusOK {
		t.Fatalf("POST %s: %d %s", url, answer.StatusCode, text)
	}
}

// send delivers one frame of Zabbix's protocol for senders and expects that every value is taken.
func send(t *testing.T, address, body string) {
	t.Helper()
	conn, err := net.DialTimeout("tcp", address, patience)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	frame := binary.LittleEndian.AppendUint32([]byte("ZBXD\x01"), uint32(len(body)))
	frame = append(append(frame, 0, 0, 0, 0), body...)
	if _, err := conn.Write(frame); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil || !strings.Contains(string(answer), "failed: 0") {
		t.Fatalf("the sender is answered %q: %v", answer, err)
	}
}

const export = `{"zabbix_export":{"version":"6.0","groups":[{"uuid":"0123456789ab4def8123456789abcde1","name":"Rooms"}],"hosts":[
{"host":"room 1","name":"room 1","groups":[{"name":"Rooms"}],"items":[{"name":"Temperature","type":"TRAP","key":"temperature","delay":"0","value_type":"FLOAT","triggers":[
{"expression":"last(/room 1/temperature)>40","name":"Too warm","priority":"HIGH"}]}]}]}}`

// TestPyzabbix runs client.py, which uses Debian's pyzabbix, against the program.
func TestPyzabbix(t *testing.T) {
	if out, err := exec.Command("./install.sh").CombinedOutput(); err != nil {
		t.Fatalf("install the client: %v\n%s", err, out)
	}
	address, trapper := startServer(t, launch.Binary(t))
	post(t, "http://"+address+"/api/import", export)
	send(t, trapper, fmt.Sprintf(`{"request":"sender data","data":[{"host":"room 1","key":"temperature","value":"42.5","clock":%d}]}`, time.Now().Unix()))
	const password = "correct horse battery"
	post(t, "http://"+address+"/api/users", fmt.Sprintf(`{"name":"admin","role":"administrator","all_hosts":true,"password":%q}`, password))
	out, err := exec.Command("/usr/bin/python3", "client.py", "http://"+address, "admin", password).CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "ok" {
		t.Errorf("the client: %v\n%s", err, out)
	}
}

// TestGet lists what a server has with the program's own verbs.
func TestGet(t *testing.T) {
	program := launch.Binary(t)
	address, trapper := startServer(t, program)
	post(t, "http://"+address+"/api/import", export)
	send(t, trapper, fmt.Sprintf(`{"request":"sender data","data":[{"host":"room 1","key":"temperature","value":"42.5","clock":%d}]}`, time.Now().Unix()))
	get := func(args ...string) (string, error) {
		out, err := exec.Command(program, append(append([]string{"get"}, args...), "--http", address)...).CombinedOutput()
		return string(out), err
	}
	f := func(want string, args ...string) {
		t.Helper()
		out, err := get(args...)
		for deadline := time.Now().Add(patience); err == nil && !strings.Contains(out, want) && time.Now().Before(deadline); out, err = get(args...) {
			time.Sleep(100 * time.Millisecond) // a problem comes a moment after its value
		}
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("get %q: %v\n%s\nwant %s", args, err, out, want)
		}
	}
	f(`"name":"Too warm"`, "problems", "--json", "--severity", "high", "--host", "room 1")
	f("Too warm", "problems", "--all", "--search", "warm")
	f("room 1  room 1", "hosts", "--group", "Rooms")
	f("temperature  42.5", "items", "--host", "room 1")
	f(`"v":"42.5"`, "values", "room 1", "temperature", "--json")
	f("  42.5\n", "values", "room 1", "temperature", "--newest", "--from", "2h", "--limit", "1")
	for want, args := range map[string][]string{
		`no host with the name "room 9"`:                    {"items", "--host", "room 9"},
		`no item with the key "humidity"`:                   {"values", "room 1", "humidity"},
		`--from "yesterday": expected a time`:               {"values", "room 1", "temperature", "--from", "yesterday"},
		"--limit 0: expected 1 to 10,000":                   {"hosts", "--limit", "0"},
		"values expects a host and the key of an item, got": {"values", "room 1"},
	} {
		if out, err := get(args...); err == nil || !strings.Contains(out, want) {
			t.Errorf("get %q: %v\n%s\nwant %s", args, err, out, want)
		}
	}
}
