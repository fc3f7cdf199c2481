package zbx

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// The tasks of a server, as Zabbix 6.0 wants them, and the results of a proxy.
func TestTasks(t *testing.T) {
	tasks := []Task{
		{Type: TaskCheckNow, At: 100, TTL: time.Hour, Item: 7},
		{Type: TaskCommand, At: 101, TTL: time.Minute, ID: 9, Host: 3, On: OnProxy, Command: "echo \"a\nb\""},
		{Type: TaskCommandResult, At: 102, ID: 9, Failed: true, Info: "no"},
		{Type: TaskDataResult, At: 103, ID: 10, Info: "yes"},
	}
	b := AppendTasks(AppendProxyAnswer(nil, "success", "", true), tasks)
	want := `{"response":"success","upload":"enabled","tasks":[{"type":6,"clock":100,"ttl":3600,"itemid":7},` +
		`{"type":2,"clock":101,"ttl":60,"commandtype":0,"command":"echo \"a\nb\"","execute_on":2,"port":0,"authtype":0,"username":"","password":"","publickey":"","privatekey":"",` +
		`"alertid":0,"parent_taskid":9,"hostid":3},{"type":3,"clock":102,"ttl":0,"status":-1,"info":"no","parent_taskid":9},` +
		`{"type":8,"clock":103,"ttl":0,"status":0,"info":"yes","parent_taskid":10}]}`
	if string(b) != want {
		t.Fatalf("found\n%s\nwant\n%s", b, want)
	}
	a, err := DecodeAnswer(b)
	if err != nil || !a.Success || a.UploadDisabled {
		t.Fatalf("%+v, %v", a, err)
	}
	if list, err := DecodeTasks(a.Tasks, 4); err != nil || !slices.Equal(list, tasks) {
		t.Errorf("found %+v, %v", list, err)
	}
	if _, err := DecodeTasks(a.Tasks, 3); err == nil {
		t.Error("more tasks than the limit are read")
	}
	if got := AppendTasks([]byte("{}"), nil); string(got) != "{}" {
		t.Errorf("no tasks: %s", got)
	}
	p := ProxyRequest{Name: ProxyData, Host: "p"}
	r, err := DecodeRequest(p.End(p.AddTask(p.Begin(nil), &tasks[2]), 0, false))
	if err != nil {
		t.Fatal(err)
	}
	if list, err := DecodeTasks(r.Tasks, 9); err != nil || !slices.Equal(list, tasks[2:3]) {
		t.Errorf("results: %+v, %v", list, err)
	}
}

func TestDecodeTasks(t *testing.T) {
	list, err := DecodeTasks([]byte(`[{"type":"6","clock":"1","ttl":"2","itemid":"3"},{"type":1,"status":0},{"type":3,"status":"-1","info":"x","parent_taskid":4,"new":{}}]`), 9)
	want := []Task{{Type: TaskCheckNow, At: 1, TTL: 2 * time.Second, Item: 3}, {Type: TaskCommandResult, ID: 4, Failed: true, Info: "x"}}
	if err != nil || !slices.Equal(list, want) {
		t.Errorf("found %+v, %v", list, err)
	}
	if _, err := DecodeTasks([]byte(`[{"type":2,"command":"`+strings.Repeat("x", MaxTaskBytes+1)+`"}]`), 9); err == nil {
		t.Error("a command that is too long is read")
	}
	for _, bad := range []string{`[1]`, `[{"type":-1}]`, `[{"type":3,"status":"no"}]`, `[{`} {
		if list, err := DecodeTasks([]byte(bad), 9); err == nil {
			t.Errorf("%s: %+v", bad, list)
		}
	}
}

func TestTask_Expired(t *testing.T) {
	task := Task{At: 100, TTL: 10 * time.Second}
	for now, want := range map[int64]bool{90: false, 110: false, 111: true} {
		if task.Expired(now) != want {
			t.Errorf("at %d: %t", now, !want)
		}
	}
	if task.TTL = 0; task.Expired(1 << 40) {
		t.Error("a task without end is over")
	}
}

func FuzzDecodeTasks(f *testing.F) {
	f.Add([]byte(`[{"type":6,"clock":100,"ttl":3600,"itemid":7},{"type":3,"status":-1,"info":"no","parent_taskid":9}]`))
	f.Add([]byte(`[null,{"ttl":"99999999999999999999"}]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := DecodeTasks(text, 5)
		if len(list) > 5 || err != nil && list != nil {
			t.Fatalf("%+v, %v", list, err)
		}
		if len(list) == 0 {
			return
		}
		b := AppendTasks(AppendSuccess(nil, ""), list)
		a, err := DecodeAnswer(b)
		if err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		if again, err := DecodeTasks(a.Tasks, 5); err != nil || len(again) != len(list) {
			t.Fatalf("%+v became %+v, %v", list, again, err)
		}
	})
}
