package collect

import (
	"fmt"
	"net"
	"os/exec"
	"os/user"
	"path/filepath"
	"testing"

	"tidemark/test/freeport"
	"tidemark/test/launch"
)

// startMariaDB starts a private MariaDB with the user tm and returns its address.
func startMariaDB(t *testing.T, dir string) string {
	t.Helper()
	data := filepath.Join(dir, "mariadb")
	install := exec.Command("mariadb-install-db", "--no-defaults", "--datadir="+data, "--auth-root-authentication-method=normal", "--skip-test-db", "--user=root")
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("mariadb-install-db: %v\n%s", err, out)
	}
	address := freeport.Address(t)
	_, port, _ := net.SplitHostPort(address)
	first := write(t, dir, "init.sql", "CREATE USER tm@'%' IDENTIFIED BY 'secret';\n")
	launch.Run(t, filepath.Join(dir, "mariadb.log"), "/usr/sbin/mariadbd", "--no-defaults", "--user=root", "--datadir="+data, "--socket="+filepath.Join(dir, "m.sock"),
		"--port="+port, "--bind-address=127.0.0.1", "--init-file="+first, "--pid-file="+filepath.Join(dir, "m.pid"), "--innodb-buffer-pool-size=16M", "--skip-name-resolve")
	return address
}

// startJava starts a Java gateway that can be asked for itself, and returns its address and that of its JMX.
func startJava(t *testing.T, dir string) (gateway, jmx string) {
	t.Helper()
	gateway, jmx = freeport.Address(t), freeport.Address(t)
	_, port, _ := net.SplitHostPort(gateway)
	_, jmxPort, _ := net.SplitHostPort(jmx)
	launch.Run(t, filepath.Join(dir, "java.log"), "/usr/bin/java", "-Xmx64m", "-XX:TieredStopAtLevel=1", "-Dcom.sun.management.jmxremote.port="+jmxPort, "-Dcom.sun.management.jmxremote.rmi.port="+jmxPort,
		"-Dcom.sun.management.jmxremote.host=127.0.0.1", "-Dcom.sun.management.jmxremote.ssl=false", "-Dcom.sun.management.jmxremote.authenticate=false",
		"-Djava.rmi.server.hostname=127.0.0.1", "-Dzabbix.listenIP=127.0.0.1", "-Dzabbix.listenPort="+port, "-Dzabbix.startPollers=2",
		"-cp", "/usr/sbin/zabbix-java-gateway.jar", "com.zabbix.gateway.JavaGateway")
	return gateway, jmx
}

// Scripts, a real sshd, PostgreSQL, MariaDB and Java gateway, over a kill of the server.
func TestLogins(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ssh, pg, maria := startSSH(t, dir), freeport.Address(t), startMariaDB(t, dir)
	launch.PostgresOn(t, pg)
	gateway, java := startJava(t, dir)
	s := startServer(t, fmt.Sprintf("collect: {ssl_folder: %q, java_gateway: %q}\n", dir, gateway))
	_, sshPort, _ := net.SplitHostPort(ssh)
	_, javaPort, _ := net.SplitHostPort(java)
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	more := func(params string, rest object) object {
		o := object{"params": params, "timeout": "20s"}
		for name, value := range rest {
			o[name] = value
		}
		return o
	}
	key := object{"authtype": "PUBLIC_KEY", "username": me.Username, "publickey": "user.pub", "privatekey": "user"}
	sql := object{"username": "postgres"}
	login := object{"username": "tm", "password": "secret"}
	shell, denied := "ssh.run[sum,,"+sshPort+"]", "ssh.run[denied,,"+sshPort+"]"
	one, rows, found := "db.odbc.select[one,,postgres://"+pg+"/postgres]", "db.odbc.get[rows,,postgres://"+pg+"/postgres]", "db.odbc.discovery[found,,mysql://"+maria+"/information_schema]"
	version, refused := `db.odbc.select[version,,"Driver=MariaDB;Server=127.0.0.1;Port=`+maria[len("127.0.0.1:"):]+`"]`, "db.odbc.select[refused,,mysql://"+maria+"/information_schema]"
	heap := `jmx["java.lang:type=Memory","HeapMemoryUsage.max"]`
	s.importHosts(object{
		"host": "logins", "interfaces": []object{
			{"ip": "127.0.0.1", "port": "10050", "interface_ref": "if1"}, {"type": "JMX", "ip": "127.0.0.1", "port": javaPort, "interface_ref": "if2"},
		},
		"items": []object{
			checked("SCRIPT", "script", "TEXT", more("var p = JSON.parse(value); return p.a + p.host;", object{"parameters": []object{{"name": "a", "value": "1"}, {"name": "host", "value": "{HOST.CONN}"}}})),
			checked("SCRIPT", "thrown", "TEXT", more("throw 'no luck'", nil)),
			checked("SSH", shell, "TEXT", more("echo $((40 + 2))\necho done", key)),
			checked("SSH", denied, "TEXT", more("echo 1", object{"username": me.Username, "password": "wrong"})),
			checked("ODBC", one, "UNSIGNED", more("SELECT 42, 1", sql)), checked("ODBC", rows, "TEXT", more("SELECT 1 AS a, NULL AS b, 'x<\"' AS c", sql)),
			checked("ODBC", found, "TEXT", more("SELECT 'x' AS name, NULL AS empty", login)), checked("ODBC", version, "TEXT", more("SELECT 40 + 2", login)),
			checked("ODBC", refused, "TEXT", more("SELECT 1", object{"username": "tm", "password": "wrong"})),
			checked("JMX", heap, "UNSIGNED", object{"interface_ref": "if2", "jmx_endpoint": "service:jmx:rmi:///jndi/rmi://{HOST.CONN}:{HOST.PORT}/jmxrmi"}),
			checked("JMX", `jmx["no:type=bean","x"]`, "TEXT", object{"interface_ref": "if2"}),
		},
	})
	want := map[string]string{
		"script": "1127.0.0.1", "thrown": "! no luck", shell: "42\ndone", denied: "! cannot log in", one: "42", rows: `[{"a":"1","b":null,"c":"x<\""}]`,
		found: `[{"{#NAME}":"x","{#EMPTY}":""}]`, version: "42", refused: "! Access denied", heap: "*", `jmx["no:type=bean","x"]`: "! ",
	}
	s.has("logins", want)
	before := s.count("logins", one)
	s.restart()
	s.has("logins", want)
	until(t, "values come after the kill", func() bool { return s.count("logins", one) > before })
}
