package collect

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"tidemark/test/freeport"
	"tidemark/test/launch"
)

// TestDocs imports every example of the pages for users.
func TestDocs(t *testing.T) {
	t.Parallel()
	s := startServer(t, "")
	pages, err := filepath.Glob("../../docs/user/*.md")
	if err != nil || len(pages) < 10 {
		t.Fatal(pages, err)
	}
	block := regexp.MustCompile("(?s)```yaml\n(zabbix_export:\n.*?)```")
	found := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for i, m := range block.FindAllSubmatch(text, -1) {
			found++
			name := write(t, t.TempDir(), fmt.Sprintf("%s.%d.yaml", filepath.Base(page), i), string(m[1]))
			out := s.tell("import", name)
			if strings.Contains(out, "refused") || strings.Contains(out, "not taken") || strings.Contains(out, "no collector") {
				t.Errorf("%s: %s", page, out)
			}
		}
	}
	if found < 2 {
		t.Errorf("only %d examples were found", found)
	}
}

// has waits until each item of a host has its value.
func (s *server) has(host string, want map[string]string) {
	s.t.Helper()
	for key, value := range want {
		var got reading
		defer func() {
			if s.t.Failed() {
				s.t.Logf("%s of %s: %+v %+v", key, host, got, got.Last)
			}
		}()
		until(s.t, fmt.Sprintf("item %s of %s is %q", key, host, value), func() bool {
			got = s.items(host)[key]
			if text := strings.TrimSpace(got.Error); text != "" && strings.HasPrefix(value, "! ") {
				return strings.Contains(text, value[2:])
			}
			return got.Last != nil && got.State == "ok" && (got.Last.Value.V == value || value == "*")
		})
	}
}

// checked describes an item that the server asks for.
func checked(kind, key, valueType string, more object) object {
	i := object{"name": key, "type": kind, "key": key, "value_type": valueType, "delay": "1s"}
	for name, value := range more {
		i[name] = value
	}
	return i
}

// A real nginx with and without TLS, a real sshd, and pings, over a kill of the server.
func TestWeb(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	authority(t, dir, "web", "client")
	plain, secure := freeport.Address(t), freeport.Address(t)
	config := fmt.Sprintf(`daemon off; master_process off; pid %[1]s/nginx.pid; error_log stderr;
events { worker_connections 64; }
http { access_log off; client_body_temp_path %[1]s; proxy_temp_path %[1]s; fastcgi_temp_path %[1]s; uwsgi_temp_path %[1]s; scgi_temp_path %[1]s;
server { listen %[2]s; location = /status { stub_status; } location = /old { return 301 http://%[2]s/new; } location = /new { return 200 "found\n"; }
	location = /auth { auth_basic "x"; auth_basic_user_file %[1]s/users; try_files /file =404; root %[1]s; }
	location = /form { add_header Set-Cookie "sid=s1; Path=/"; return 200 "<form>token=t42</form>\n"; }
	location = /private { if ($cookie_sid != s1) { return 403; } if ($arg_t != t42) { return 402; } return 200 "hello $http_user_agent\n"; } }
server { listen %[3]s ssl; ssl_certificate %[1]s/web.pem; ssl_certificate_key %[1]s/web.key; ssl_client_certificate %[1]s/ca.pem; ssl_verify_client optional; return 200 $ssl_client_s_dn; } }
`, dir, plain, secure)
	write(t, dir, "users", "u:{PLAIN}p\n")
	write(t, dir, "file", "inside\n")
	launch.Run(t, filepath.Join(dir, "nginx.log"), "/usr/sbin/nginx", "-c", write(t, dir, "nginx.conf", config), "-p", dir)
	ssh := startSSH(t, dir)

	s := startServer(t, fmt.Sprintf("collect: {ssl_folder: %q}\n", dir))
	web := func(path string, more object) object {
		o := object{"url": path, "timeout": "20s", "request_method": "GET"}
		for name, value := range more {
			o[name] = value
		}
		return o
	}
	_, sshPort, _ := net.SplitHostPort(ssh)
	_, securePort, _ := net.SplitHostPort(secure)
	cert := "web.certificate.get[web," + securePort + ",127.0.0.1]"
	s.importHosts(object{
		"host": "web", "interfaces": []object{{"ip": "127.0.0.1", "port": "10050", "interface_ref": "if1"}},
		"items": []object{
			checked("HTTP_AGENT", "status", "TEXT", web("http://"+plain+"/status", nil)),
			checked("HTTP_AGENT", "redirected", "TEXT", web("http://"+plain+"/old", nil)),
			checked("HTTP_AGENT", "auth", "TEXT", web("http://"+plain+"/auth", object{"authtype": "BASIC", "username": "u", "password": "p"})),
			checked("HTTP_AGENT", "denied", "TEXT", web("http://"+plain+"/auth", nil)),
			checked("HTTP_AGENT", "secure", "TEXT", web("https://"+secure+"/", object{"ssl_cert_file": "client.pem", "ssl_key_file": "client.key", "verify_host": "YES"})),
			checked("HTTP_AGENT", "own", "TEXT", web("http://"+s.http+"/api/hosts", nil)),
			checked("SIMPLE", "net.tcp.service[ssh,,"+sshPort+"]", "UNSIGNED", nil),
			checked("SIMPLE", "net.tcp.service[https,{HOST.CONN},"+securePort+"]", "UNSIGNED", nil),
			checked("SIMPLE", "net.tcp.service[ssh,,"+securePort+"]", "UNSIGNED", nil),
			checked("SIMPLE", "icmpping[,2,20,,10000]", "UNSIGNED", nil),
			checked("SIMPLE", cert, "TEXT", nil),
		},
		"httptests": []object{{
			"name": "shop", "delay": "1s", "agent": "Tester", "steps": []object{
				{"name": "form", "url": "http://" + plain + "/form", "timeout": "20s", "status_codes": "200", "variables": []object{{"name": "{t}", "value": "regex:token=([a-z0-9]+)"}}},
				{"name": "in", "url": "http://" + plain + "/private", "timeout": "20s", "query_fields": []object{{"name": "t", "value": "{t}"}}, "required": "hello Tester", "status_codes": "200"},
			},
		}, {
			"name": "broken", "delay": "1s", "steps": []object{
				{"name": "private", "url": "http://" + plain + "/private", "timeout": "20s", "status_codes": "200"}, {"name": "own", "url": "http://" + s.http + "/"},
			},
		}, {
			"name": "own", "delay": "1s", "steps": []object{{"name": "own", "url": "http://" + s.http + "/"}},
		}},
	})
	want := map[string]string{
		"status": "*", "redirected": "found\n", "auth": "inside\n", "denied": "! response code 401", "secure": "CN=client,O=Tidemark", "own": "! this server's",
		"net.tcp.service[ssh,," + sshPort + "]": "1", "net.tcp.service[https,{HOST.CONN}," + securePort + "]": "1", "net.tcp.service[ssh,," + securePort + "]": "0",
		"icmpping[,2,20,,10000]": "1", cert: "*",
		"web.test.fail[shop]": "0", "web.test.rspcode[shop,form]": "200", "web.test.rspcode[shop,in]": "200", "web.test.time[shop,in,resp]": "*", "web.test.in[shop,,bps]": "*",
		"web.test.fail[broken]": "1", "web.test.rspcode[broken,private]": "403", "web.test.fail[own]": "1",
		"web.test.error[broken]": `step "private": response code 403 did not match any of the required status codes "200"`,
	}
	s.has("web", want)
	before := s.count("web", "redirected")
	s.restart()
	s.has("web", want)
	until(t, "values come after the kill", func() bool { return s.count("web", "redirected") > before })
}

// startSSH starts an OpenSSH server that lets the user of this process in with the key in dir/user, and returns its address.
func startSSH(t *testing.T, dir string) string {
	t.Helper()
	for _, name := range []string{"hostkey", "user"} {
		if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, name)).CombinedOutput(); err != nil {
			t.Fatalf("ssh-keygen: %v\n%s", err, out)
		}
	}
	if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
		t.Fatal(err)
	}
	address := freeport.Address(t)
	host, port, _ := net.SplitHostPort(address)
	config := fmt.Sprintf("ListenAddress %s\nPort %s\nHostKey %[3]s/hostkey\nPidFile %[3]s/sshd.pid\nAuthorizedKeysFile %[3]s/user.pub\nStrictModes no\nPasswordAuthentication no\nPermitRootLogin yes\nUsePAM no\n", host, port, dir)
	launch.Run(t, filepath.Join(dir, "sshd.log"), "/usr/sbin/sshd", "-D", "-e", "-f", write(t, dir, "sshd.conf", config))
	return address
}
