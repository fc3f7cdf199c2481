package media

import (
	"context"
	"errors"
	"strings"
	"testing"

	"tidemark/model"
)

type fakeCommander struct {
	host         model.HostID
	remedy, line string
	err          error
}

func (f *fakeCommander) RunCommand(_ context.Context, host model.HostID, remedy, line string) (string, error) {
	f.host, f.remedy, f.line = host, remedy, line
	return "done\x1b\n", f.err
}

func TestCommand_Check(t *testing.T) {
	f := func(line, want string) {
		t.Helper()
		err := (&Command{Line: line}).Check()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", line, err, want)
		}
	}
	f("systemctl restart nginx", "")
	f(`ps -ef | awk '{print $1}' >> "${HOME}/x" && echo {EVENT.ID} {EVENT.VALUE}{ALERT.KIND}`, "")
	f("echo {HOST.ID},{EVENT.TIMESTAMP}", "")
	f("  ", "expected 1 to")
	f(strings.Repeat("x", maxCommandBytes+1), "expected 1 to")
	f("a\nb", "line break")
	f(`a\`, "backslash")
	f("echo {HOST.NAME}", `"{HOST.NAME}" is not expanded`)
	f("echo {ITEM.VALUE1}", "not expanded")
	f("echo {EVENT.IDLE}", "not expanded")
	f("echo {$SECRET}", "not expanded")
	f(`echo {$SECRET:"a"}`, "not expanded")
	f("echo {?last(/h/k)}", "not expanded")
	f("echo {{ITEM.VALUE}.regsub(a,b)}", "not expanded")
	f("echo {#LLD}", "not expanded")
	f("echo {EVENT.ID}:{HOST.NAME}", `"{HOST.NAME}" is not expanded`)
	f("echo {EVENT.ID}{$SECRET}", `"{$SECRET}" is not expanded`)
}

func TestCommand_Send(t *testing.T) {
	values := map[string]string{"{HOST.ID}": "7", "{EVENT.ID}": "42", "{ALERT.KIND}": "problem"}
	expand := func(text string) string {
		if v, ok := values[text]; ok {
			return v
		}
		return text
	}
	run := &fakeCommander{}
	c := &Command{Line: "log {EVENT.ID} {ALERT.KIND} {EVENT.ID}", Commander: run}
	answer, err := c.Send(t.Context(), Message{To: "host", Subject: "$(x)", Expand: expand})
	if err != nil || answer != "done" || run.host != 7 || run.line != "log 42 problem 42" {
		t.Errorf("answer %q, %v; ran %q on %d", answer, err, run.line, run.host)
	}
	if run.remedy != "log {EVENT.ID} problem {EVENT.ID}" {
		t.Errorf("the remedy is %q, want one for all problems", run.remedy)
	}
	*run = fakeCommander{err: errors.New("no")}
	if _, err = c.Send(t.Context(), Message{Expand: expand}); err == nil || err.Error() != "no" {
		t.Errorf("a failure is %v", err)
	}
	// A value that is more than a word never reaches a shell, wherever it came from.
	*run, values["{EVENT.ID}"] = fakeCommander{}, "1; reboot"
	if _, err = c.Send(t.Context(), Message{Expand: expand}); !errors.Is(err, ErrSettings) || run.line != "" {
		t.Errorf("a value with a command in it: %v, ran %q", err, run.line)
	}
	values["{EVENT.ID}"] = "1"
	delete(values, "{HOST.ID}")
	if _, err = c.Send(t.Context(), Message{Expand: expand}); !errors.Is(err, ErrSettings) || run.line != "" {
		t.Errorf("without a host: %v, ran %q", err, run.line)
	}
	if _, err = (&Command{Line: "x"}).Send(t.Context(), Message{}); !errors.Is(err, ErrSettings) {
		t.Errorf("without a commander: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	values["{HOST.ID}"], run.err = "7", context.Canceled
	if _, err = c.Send(ctx, Message{Expand: expand}); err == nil || !strings.Contains(err.Error(), "may have run") {
		t.Errorf("a command that is not waited for: %v", err)
	}
}
