package compat

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"tidemark/test/freeport"
)

// importReachable imports a host with an interface for agents.
func (s *server) importReachable(host, address string, items ...map[string]any) {
	s.t.Helper()
	ip, port, err := net.SplitHostPort(address)
	if err != nil {
		s.t.Fatal(err)
	}
	body, err := json.Marshal(map[string]any{"zabbix_export": map[string]any{
		"version": "6.0",
		"groups":  []map[string]any{{"uuid": "0b6f8a52c9a14c0c8d4d0f3e5b7a9c11", "name": "Compat"}},
		"hosts": []map[string]any{{
			"host": host, "name": host, "groups": []map[string]any{{"name": "Compat"}}, "items": items,
			"interfaces": []map[string]any{{"ip": ip, "port": port, "interface_ref": "if1"}},
		}},
	}})
	if err != nil {
		s.t.Fatal(err)
	}
	s.send(http.MethodPost, "/api/import", string(body))
}

func (s *server) send(method, path, body string) string {
	s.t.Helper()
	req, err := http.NewRequest(method, "http://"+s.http+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		s.t.Fatalf("%s %s: %s, %v: %.1000s", method, path, resp.Status, err, answer)
	}
	return string(answer)
}

// A server asks a real agent and is sent active checks by it, both with a key, which is replaced while the agent still has
// the old one, and over a kill of the server.
func TestServer_encrypted(t *testing.T) {
	for _, a := range agents {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			s := startServer(t)
			dir := t.TempDir()
			config, _, _ := tlsSettings(t, "psk", dir)
			port := freeport.Port(t)
			address := fmt.Sprintf("127.0.0.1:%d", port)
			s.importReachable("compat", address, item("ZABBIX_PASSIVE", "agent.ping", "UNSIGNED", "1s"), item("ZABBIX_ACTIVE", "agent.hostname", "CHAR", "1s"))
			path := "/api/hosts/" + s.hostID("compat") + "/tls"
			s.send(http.MethodPut, path, `{"connect":"psk","accept":["psk"],"psk_identity":"`+tlsIdentity+`","psk":"`+tlsKey+`"}`)
			// Not before: an agent that is refused its list asks again only after a minute.
			startPassiveOn(t, a, dir, config+fmt.Sprintf("TLSConnect=psk\nServerActive=%s\nBufferSend=1\n", s.trapper), port)
			more := func(what string) {
				t.Helper()
				ping, name := len(s.values("compat", "agent.ping")), len(s.values("compat", "agent.hostname"))
				s.until("values come "+what, func() bool {
					return len(s.values("compat", "agent.ping")) > ping+1 && len(s.values("compat", "agent.hostname")) > name+1
				})
			}
			more("with the key")
			s.send(http.MethodPut, path, `{"connect":"psk","accept":["psk"],"psk_identity":"other","psk":"`+strings.Repeat("ab", 32)+`","keep":"1h"}`)
			more("with the old key while it is kept")
			s.restart()
			more("after a kill")
			if answer := s.send(http.MethodGet, path, ""); strings.Contains(answer, tlsKey) || !strings.Contains(answer, `"old_psk_identity"`) {
				t.Errorf("settings: %s", answer)
			}
		})
	}
}
