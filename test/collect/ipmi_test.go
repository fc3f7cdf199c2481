package collect

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tidemark/test/freeport"
	"tidemark/test/launch"
)

// record is a sensor data record in the words of ipmi_sim: a full one of a temperature in degrees with the value 2x-10, or a compact one of states.
func record(id, number, kind int, full bool, name string) string {
	b := []int{id, 0, 0x51, 2, 0, 0x20, 0, number, 7, 1, 0x7f, 0x68, kind, 0x6f, 0, 0, 0, 0, 0, 0, 0xc0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	if full {
		b = []int{id, 0, 0x51, 1, 0, 0x20, 0, number, 7, 1, 0x7f, 0x68, kind, 1, 0, 0, 0, 0, 0x3f, 0x3f, 0, 1, 0, 0, 2, 0, 0xf6, 0xc0, 0, 0, 0, 0, 0, 0, 255, 0, 100, 90, 80, 5, 10, 15, 0, 0, 0, 0, 0}
	}
	b = append(b, 0xc0|len(name))
	for _, c := range name {
		b = append(b, int(c))
	}
	b[4] = len(b) - 5
	var out strings.Builder
	for _, v := range b {
		fmt.Fprintf(&out, " 0x%02x", v)
	}
	return "main_sdr_add 0x20" + out.String() + "\n"
}

// startIPMI starts a real ipmi_sim with three sensors, and returns its address.
func startIPMI(t *testing.T, dir string) string {
	t.Helper()
	host, port, _ := net.SplitHostPort(freeport.Address(t))
	lan := fmt.Sprintf(`name "sim"
set_working_mc 0x20
  startlan 1
    addr %s %s
    priv_limit admin
    allowed_auths_callback none md2 md5 straight
    allowed_auths_user none md2 md5 straight
    allowed_auths_operator none md2 md5 straight
    allowed_auths_admin none md2 md5 straight
    guid a123456789abcdefa123456789abcdef
  endlan
  user 2 true "watcher" "secret" user 10 none md2 md5 straight
`, host, port)
	commands := `mc_setbmc 0x20
mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr
sel_enable 0x20 1000 0x0a
sensor_add 0x20 0 1 1 1
sensor_set_value 0x20 0 1 30 0
sensor_set_threshold 0x20 0 1 settable 111111 100 90 80 5 10 15
sensor_set_event_support 0x20 0 1 enable scanning per-state 000111111111111 000111111111111 000111111111111 000111111111111
` + record(1, 1, 1, true, "CPU Temp") + `sensor_add 0x20 0 2 0x08 0x6f
sensor_set_bit 0x20 0 2 0 1 0
sensor_set_bit 0x20 0 2 3 1 0
sensor_set_event_support 0x20 0 2 enable scanning per-state 000000000001111 000000000001111 000000000001111 000000000001111
` + record(2, 2, 8, false, "PSU 1") + "sensor_add 0x20 0 9 1 1\n" + record(3, 9, 1, true, "Gone") + record(4, 11, 1, true, "Odd") + "mc_enable 0x20\n"
	state := filepath.Join(dir, "ipmi")
	if err := os.MkdirAll(state, 0o755); err != nil {
		t.Fatal(err)
	}
	launch.Run(t, filepath.Join(dir, "ipmi.log"), "/usr/bin/ipmi_sim", "-n", "-c", write(t, dir, "lan.conf", lan), "-f", write(t, dir, "sim.emu", commands), "-s", state)
	return net.JoinHostPort(host, port)
}

// A real ipmi_sim is asked for sensors with values and with states, discovered, and refuses a wrong password, over a kill of the server.
func TestIPMI(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	address := startIPMI(t, dir)
	host, port, _ := net.SplitHostPort(address)
	s := startServer(t, "")
	item := func(key, sensor, kind string) object {
		return checked("IPMI", key, kind, object{"ipmi_sensor": sensor})
	}
	machine := func(name, user, password string) object {
		return object{
			"host": name, "ipmi_privilege": "USER", "ipmi_username": user, "ipmi_password": password,
			"interfaces": []object{{"type": "IPMI", "ip": host, "port": port, "interface_ref": "if1"}},
			"items": []object{
				item("temp", "CPU Temp", "FLOAT"), item("temp.id", "id:CPU Temp", "FLOAT"), item("temp.name", "name:(7.1).CPU Temp", "FLOAT"), item("psu", "PSU 1", "UNSIGNED"),
				item("gone", "Gone", "FLOAT"), item("odd", "Odd", "FLOAT"), item("unknown", "Nothing", "FLOAT"), item("ipmi.get", "", "TEXT"),
			},
			"discovery_rules": []object{{
				"name": "sensors", "type": "DEPENDENT", "key": "ipmi.discovery", "delay": "0", "master_item": object{"key": "ipmi.get"},
				"lld_macro_paths": []object{{"lld_macro": "{#SENSOR_ID}", "path": "$.id"}, {"lld_macro": "{#HIGH}", "path": "$.threshold.upper.crit"}},
				"filter":          object{"conditions": []object{{"macro": "{#HIGH}", "value": ".", "formulaid": "A"}}},
				"item_prototypes": []object{{
					"name": "{#SENSOR_ID} below {#HIGH}", "type": "DEPENDENT", "key": "sensor[{#SENSOR_ID}]", "value_type": "FLOAT", "delay": "0", "master_item": object{"key": "ipmi.get"},
					"preprocessing": []object{{"type": "JSONPATH", "parameters": []string{"$[?(@.id=='{#SENSOR_ID}')].value.first()"}}},
				}},
			}},
		}
	}
	s.importHosts(machine("machine", "watcher", "secret"), machine("locked", "watcher", "wrong"), machine("stranger", "nobody", "secret"))
	want := map[string]string{
		"temp": "50", "temp.id": "50", "temp.name": "50", "psu": "9", "gone": "! has no reading now", "odd": "! does not know the sensor", "unknown": "! has no sensor", "ipmi.get": "*", "sensor[CPU Temp]": "50",
	}
	s.has("machine", want)
	s.has("locked", map[string]string{"temp": "! the password is wrong"})
	s.has("stranger", map[string]string{"temp": "! does not know the user"})
	var list []struct {
		ID, Name, Units string
		Sensor, Reading struct{ Text string }
		State           struct {
			Type int
			Text string
		}
		Value     any
		Threshold *struct{ Lower, Upper map[string]float64 }
	}
	if err := json.Unmarshal([]byte(s.items("machine")["ipmi.get"].Last.Value.V), &list); err != nil || len(list) != 4 {
		t.Fatalf("%v: %s", err, s.items("machine")["ipmi.get"].Last.Value.V)
	}
	if c := list[0]; c.ID != "CPU Temp" || c.Units != "C" || c.Sensor.Text != "temperature" || c.Reading.Text != "threshold" || c.Threshold == nil || c.Threshold.Upper["crit"] != 170 || c.Threshold.Lower["non_crit"] != 20 {
		t.Errorf("%+v", c)
	}
	if p := list[1]; p.State.Text != "presence detected, input lost" || p.State.Type != 9 || p.Value != 9.0 || p.Threshold != nil {
		t.Errorf("%+v", p)
	}
	if g := list[2]; g.State.Text != "unavailable" || g.Value != nil {
		t.Errorf("%+v", g)
	}
	before := s.count("machine", "temp")
	s.restart()
	s.has("machine", want)
	until(t, "values come after the kill", func() bool { return s.count("machine", "temp") > before })
}
