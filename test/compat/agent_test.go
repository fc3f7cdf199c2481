package compat

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"tidemark/test/freeport"
)

// realAgent describes one of the two agents.
type realAgent struct {
	name, path string
	args       func(config string) []string
	// config is what only this agent has.
	config func(dir string) string
}

var agents = []realAgent{
	{
		name: "zabbix_agentd", path: "/usr/sbin/zabbix_agentd",
		args:   func(config string) []string { return []string{"-f", "-c", config} },
		config: func(string) string { return "AllowRoot=1\nStartAgents=0\n" },
	},
	{
		name: "zabbix_agent2", path: "/usr/sbin/zabbix_agent2",
		args:   func(config string) []string { return []string{"-f", "-c", config} },
		config: func(dir string) string { return "ControlSocket=" + dir + "/agent.sock\n" },
	},
}

// writeConfig writes an agent's configuration. The user parameter compat.seq counts its own executions in a file, so that a
// value that is lost or stored twice shows.
func writeConfig(t *testing.T, a realAgent, dir string, s *server) string {
	t.Helper()
	text := fmt.Sprintf(`PidFile=%[1]s/agent.pid
LogType=console
Server=127.0.0.1
ListenIP=127.0.0.1
ListenPort=%[2]d
ServerActive=127.0.0.1:%[3]d
Hostname=%[4]s
HostMetadata=linux compat
BufferSend=1
BufferSize=1000
Timeout=10
UserParameter=compat.seq,echo $(( $(cat %[1]s/seq) + 1 )) | tee %[1]s/seq.new && mv %[1]s/seq.new %[1]s/seq
`, dir, freeport.Port(t), s.trapperPort, a.name) + a.config(dir)
	for name, content := range map[string]string{"agent.conf": text, "seq": "0\n", "app.log": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "agent.conf")
}

func TestAgents_activeChecksSurviveKills(t *testing.T) {
	for _, a := range agents {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			s := startServer(t)
			dir := t.TempDir()
			config := writeConfig(t, a, dir, s)
			logFile := filepath.Join(dir, "agent.log")
			showLog(t, logFile)
			logKey := "log[" + dir + "/app.log]"

			// The unknown agent registers itself and gets a list at once.
			first := run(t, logFile, a.path, a.args(config)...)
			s.until("the agent is registered", func() bool { return s.hostID(a.name) != "" })
			s.until("a value of the linked template is there", func() bool { return len(s.values(a.name, "agent.ping")) > 0 })
			first.stop()

			s.importHost(a.name, item("ZABBIX_ACTIVE", "compat.seq", "UNSIGNED", "1s"), item("ZABBIX_ACTIVE", logKey, "LOG", "1s"))
			run(t, logFile, a.path, a.args(config)...)
			const rounds, linesPerRound = 4, 25
			line := 0
			for round := range rounds {
				for range linesPerRound {
					line++
					appendLine(t, filepath.Join(dir, "app.log"), fmt.Sprintf("line %d of the log", line))
				}
				before := len(s.values(a.name, "compat.seq"))
				s.until("values go on", func() bool { return len(s.values(a.name, "compat.seq")) >= before+2 })
				// Another moment of the second in each round.
				<-time.After(time.Duration(round) * 270 * time.Millisecond)
				s.restart()
			}
			s.until("the whole log has arrived", func() bool { return len(s.values(a.name, logKey)) >= line })
			before := len(s.values(a.name, "compat.seq"))
			s.until("values go on", func() bool { return len(s.values(a.name, "compat.seq")) >= before+2 })
			checkSequence(t, s.values(a.name, "compat.seq"))
			for i, v := range s.values(a.name, logKey) {
				if want := fmt.Sprintf("line %d of the log", i+1); v.text != want {
					t.Fatalf("log value %d is %q, expected %q", i, v.text, want)
				}
			}
			if n := len(s.values(a.name, logKey)); n != line {
				t.Errorf("%d log values, expected %d", n, line)
			}
		})
	}
}

func appendLine(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text + "\n"); err != nil {
		t.Fatal(err)
	}
}

// checkSequence checks that values are 1, 2, 3 … without a gap and without a repetition.
func checkSequence(t *testing.T, values []value) {
	t.Helper()
	if len(values) < 10 {
		t.Errorf("only %d values", len(values))
	}
	for i, v := range values {
		if v.text != strconv.Itoa(i+1) {
			t.Fatalf("value %d of the sequence is %s, expected %d; all: %v", i, v.text, i+1, values)
		}
	}
}

// Real agents get the global regular expressions that the keys of their log items name.
func TestAgents_globalRegexps(t *testing.T) {
	for _, a := range agents {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			s := startServer(t)
			dir := t.TempDir()
			config := writeConfig(t, a, dir, s)
			logFile := filepath.Join(dir, "agent.log")
			showLog(t, logFile)
			body := `{"expressions":[{"expression":"ERROR,fatal","expression_type":"any_included","exp_delimiter":","},{"expression":"^#","expression_type":"result_false"}]}`
			r, err := http.NewRequest(http.MethodPut, "http://"+s.http+"/api/regexps/Errors%20of%20app", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			resp, err := http.DefaultClient.Do(r)
			if err != nil || resp.StatusCode != http.StatusOK {
				t.Fatalf("%v %v", resp, err)
			}
			resp.Body.Close()
			key := "log[" + dir + "/app.log,@Errors of app]"
			s.importHost(a.name, item("ZABBIX_ACTIVE", key, "LOG", "1s"))
			for _, line := range []string{"all is well", "an error came", "# a fatal comment", "Fatal: over"} {
				appendLine(t, filepath.Join(dir, "app.log"), line)
			}
			run(t, logFile, a.path, a.args(config)...)
			s.until("the second line that fits has arrived", func() bool { return len(s.values(a.name, key)) >= 2 })
			if got := s.values(a.name, key); len(got) != 2 || got[0].text != "an error came" || got[1].text != "Fatal: over" {
				t.Errorf("values %+v", got)
			}
		})
	}
}
