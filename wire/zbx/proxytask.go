package zbx

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"
)

// TaskType says what a task is, in the numbers of Zabbix.
type TaskType int

// The types of tasks that are known. Others are passed over.
const (
	// TaskCommand asks a proxy to run a command, TaskCommandResult is what became of it.
	TaskCommand       TaskType = 2
	TaskCommandResult TaskType = 3
	// TaskCheckNow asks a proxy for a value of an item at once; nothing answers it but the value.
	TaskCheckNow TaskType = 6
	// TaskData asks a proxy for something about itself, TaskDataResult is the answer.
	TaskData       TaskType = 7
	TaskDataResult TaskType = 8
)

// The places where a command runs.
const (
	OnAgent = 0
	OnProxy = 2
)

// The kinds of commands.
const (
	// ScriptCommand is a line for a shell.
	ScriptCommand = 0
)

// MaxTaskBytes bounds a command and what a command printed.
const MaxTaskBytes = 512 << 10

// Task is what a server asks of a proxy besides its configuration, or what became of it.
type Task struct {
	Type TaskType
	// At is when it was made, Unix seconds. It is void TTL later, by the clock of who has it; zero for never.
	At  int64
	TTL time.Duration
	// ID tells to which task a result belongs.
	ID uint64
	// Item is that of a TaskCheckNow, Host that of a TaskCommand.
	Item, Host uint64
	// Command is a line for the shell of what On names; Kind is ScriptCommand, or something else.
	Command  string
	On, Kind int
	// Failed and Info are the result: what the command printed, or why there is none.
	Failed bool
	Info   string
}

// Expired reports whether a task is void at a time, Unix seconds.
func (t *Task) Expired(now int64) bool {
	return t.TTL > 0 && now > t.At+int64(t.TTL/time.Second)
}

// AppendTasks appends tasks to the object that dst ends with, which has a member; none leaves it as it is.
func AppendTasks(dst []byte, list []Task) []byte {
	if len(list) == 0 {
		return dst
	}
	dst = append(dst[:len(dst)-1], `,"tasks":[`...)
	for i := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = list[i].append(dst)
	}
	return append(dst, `]}`...)
}

// append appends one task. Zabbix wants every member that a type has.
func (t *Task) append(dst []byte) []byte {
	number := func(name string, n int64) {
		dst = strconv.AppendInt(append(append(append(dst, ',', '"'), name...), `":`...), n, 10)
	}
	text := func(name, v string) { dst = AppendString(append(append(append(dst, ',', '"'), name...), `":`...), v) }
	dst = strconv.AppendInt(append(dst, `{"type":`...), int64(t.Type), 10)
	number("clock", t.At)
	number("ttl", int64(t.TTL/time.Second))
	switch t.Type {
	case TaskCheckNow:
		dst = strconv.AppendUint(append(dst, `,"itemid":`...), t.Item, 10)
	case TaskCommand:
		number("commandtype", int64(t.Kind))
		text("command", t.Command)
		number("execute_on", int64(t.On))
		number("port", 0)
		number("authtype", 0)
		for _, name := range []string{"username", "password", "publickey", "privatekey"} {
			text(name, "")
		}
		number("alertid", 0)
		dst = strconv.AppendUint(append(dst, `,"parent_taskid":`...), t.ID, 10)
		dst = strconv.AppendUint(append(dst, `,"hostid":`...), t.Host, 10)
	case TaskCommandResult, TaskDataResult:
		status := int64(0)
		if t.Failed {
			status = -1
		}
		number("status", status)
		text("info", t.Info)
		dst = strconv.AppendUint(append(dst, `,"parent_taskid":`...), t.ID, 10)
	}
	return append(dst, '}')
}

// signed is a number that may be negative, as a number or as a text.
type signed int64

// UnmarshalJSON reads it.
func (n *signed) UnmarshalJSON(text []byte) error {
	v, err := strconv.ParseInt(string(bytes.Trim(text, `"`)), 10, 32)
	if err != nil {
		return fmt.Errorf("found %.40q, expected a number", text)
	}
	*n = signed(v)
	return nil
}

// DecodeTasks reads a list of tasks, at most limit. Those of a type that is not known are left out. Commands and what they printed are cut at
// MaxTaskBytes; a command that is cut is refused.
func DecodeTasks(text []byte, limit int) ([]Task, error) {
	if len(text) == 0 {
		return nil, nil
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	var list []Task
	for n := 1; d.More(); n++ {
		if n > limit {
			return nil, fmt.Errorf("more than %d tasks", limit)
		}
		var row struct {
			Type   loose  `json:"type"`
			Clock  loose  `json:"clock"`
			TTL    loose  `json:"ttl"`
			Parent loose  `json:"parent_taskid"`
			Item   loose  `json:"itemid"`
			Host   loose  `json:"hostid"`
			Kind   loose  `json:"commandtype"`
			On     loose  `json:"execute_on"`
			Status signed `json:"status"`
			Text   string `json:"command"`
			Info   string `json:"info"`
		}
		if err := d.Decode(&row); err != nil {
			return nil, fmt.Errorf("task %d: %w", n, err)
		}
		if len(row.Text) > MaxTaskBytes {
			return nil, fmt.Errorf("task %d: a command of %d bytes, expected at most %d", n, len(row.Text), MaxTaskBytes)
		}
		t := Task{
			Type: TaskType(min(row.Type, math.MaxInt32)), At: int64(min(row.Clock, 1<<33)), TTL: time.Duration(min(row.TTL, math.MaxInt32)) * time.Second, ID: uint64(row.Parent),
			Item: uint64(row.Item), Host: uint64(row.Host), Command: row.Text, On: int(min(row.On, 255)), Kind: int(min(row.Kind, 255)),
			Failed: row.Status != 0, Info: row.Info[:min(len(row.Info), MaxTaskBytes)],
		}
		switch t.Type {
		case TaskCommand, TaskCommandResult, TaskCheckNow, TaskData, TaskDataResult:
			list = append(list, t)
		}
	}
	return list, nil
}
