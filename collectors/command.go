package collectors

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"tidemark/collect/poller"
	"tidemark/model"
)

const (
	// MaxCommandBytes bounds a command.
	MaxCommandBytes = 64 << 10
	// CommandTime is how long a command may run. Agents of Zabbix end it after their own time limit, which is 3 s unless they are told another.
	CommandTime = 30 * time.Second
)

// agentTimeout is what an agent of Zabbix says of a command that it has ended: "Timeout while executing a shell script."
const agentTimeout = "Timeout while executing"

// CheckCommand reports what is wrong with a command.
func CheckCommand(command string) error {
	switch {
	case strings.TrimSpace(command) == "":
		return errors.New("the command is empty")
	case len(command) > MaxCommandBytes:
		return fmt.Errorf("the command has %d bytes, expected at most %d", len(command), MaxCommandBytes)
	case strings.ContainsRune(command, 0):
		return errors.New("the command has a zero byte in it")
	}
	return nil
}

// RunOnAgent has the agent of a host run a command and returns what it printed. The agent must allow the key system.run; agents is the checker of
// passive agents. It takes CommandTime at most, and gives the first 512 KiB of what was printed.
func RunOnAgent(ctx context.Context, agents poller.Checker, h *model.Host, command string) (string, error) {
	if err := CheckCommand(command); err != nil {
		return "", err
	}
	if strings.HasSuffix(command, `\`) {
		return "", errors.New("an agent cannot be given a command that ends with a backslash")
	}
	item := &model.Item{
		HostID: h.ID, Type: model.PassiveAgent, Key: `system.run["` + strings.ReplaceAll(command, `"`, `\"`) + `",wait]`, Collect: &model.Collect{Timeout: CommandTime},
	}
	task, _ := Task(h, item)
	if task.Fault != "" {
		return "", errors.New(task.Fault)
	}
	ctx, cancel := context.WithTimeout(ctx, task.Timeout)
	defer cancel()
	results := make([]poller.Result, 1)
	agents.Check(ctx, []*poller.Task{&task}, results)
	said := results[0].Text
	text := strings.ToValidUTF8(string(said[:min(len(said), maxOutputBytes)]), "?")
	switch results[0].Outcome {
	case poller.Unreachable:
		return "", errors.New("the agent does not answer: " + text)
	case poller.NotSupported:
		if strings.Contains(text, agentTimeout) {
			return "", errors.New("the command took longer than the agent's Timeout; it may have run, and may run still: " + text)
		}
		return "", errors.New("the agent does not run the command (it must allow system.run, as with AllowKey=system.run[*]): " + text)
	}
	return text, nil
}
