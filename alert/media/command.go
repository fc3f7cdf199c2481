package media

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"tidemark/model"
)

// maxCommandBytes bounds the line of a command.
const maxCommandBytes = 8 << 10

// CommandMacros are the macros that a command may hold. Their values are digits and words of this program: nothing that came from outside becomes a part
// of a line for a shell.
var CommandMacros = []string{"{ALERT.KIND}", "{EVENT.ID}", "{EVENT.NSEVERITY}", "{EVENT.TIMESTAMP}", "{EVENT.VALUE}", "{HOST.ID}"}

// occasionMacros are those that tell one problem from another; the others say what is to be done.
var occasionMacros = []string{"{EVENT.ID}", "{EVENT.TIMESTAMP}"}

// macroLike finds what looks like a macro of Zabbix. Shells and awk have ${NAME} and {print $1}, which is none.
var macroLike = regexp.MustCompile(`\{\$[A-Z0-9_.]+[:}][^ {]*|\{[{?#][^ {]*|\{[A-Z]+[0-9]*\.[^ {]*`)

// macroValue is what the value of a macro in a command may be.
var macroValue = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// Commander runs commands on hosts.
type Commander interface {
	// RunCommand has the agent of a host run a line of a shell, and returns what it printed. Lines with the same remedy do the same, for whatever problem.
	RunCommand(ctx context.Context, host model.HostID, remedy, line string) (string, error)
}

// Command has the agent of the problem's host run a command.
type Command struct {
	// Line is for a shell on the host; only CommandMacros are expanded in it.
	Line string
	// Commander runs it; nil permits none.
	Commander Commander
}

// Check reports what is wrong with the settings.
func (c *Command) Check() error {
	switch {
	case strings.TrimSpace(c.Line) == "" || len(c.Line) > maxCommandBytes:
		return fmt.Errorf("the command has %d bytes, expected 1 to %d: %w", len(c.Line), maxCommandBytes, ErrSettings)
	case strings.ContainsFunc(c.Line, unicode.IsControl):
		return fmt.Errorf("the command has a line break or another control character in it, expected one line: %w", ErrSettings)
	case strings.HasSuffix(c.Line, `\`):
		return fmt.Errorf("the command ends with a backslash, which an agent cannot be given: %w", ErrSettings)
	}
	for _, found := range macroLike.FindAllString(c.Line, -1) {
		if !slices.ContainsFunc(CommandMacros, func(known string) bool { return strings.HasPrefix(found, known) }) {
			return fmt.Errorf("%.60q is not expanded in commands, because its value may come from outside; only %s are: %w", found, strings.Join(CommandMacros, ", "), ErrSettings)
		}
	}
	return nil
}

// Send implements Sender. It is done once: who calls it again runs the command again.
func (c *Command) Send(ctx context.Context, m Message) (string, error) {
	if c.Commander == nil {
		return "", fmt.Errorf("this server runs no commands: %w", ErrSettings)
	}
	line, remedy := c.Line, c.Line
	for _, macro := range CommandMacros {
		if !strings.Contains(line, macro) {
			continue
		}
		value := m.expand(macro)
		if !macroValue.MatchString(value) {
			return "", fmt.Errorf("the value of %s is %.70q, expected letters and digits; the command was not run: %w", macro, value, ErrSettings)
		}
		line = strings.ReplaceAll(line, macro, value)
		if !slices.Contains(occasionMacros, macro) {
			remedy = strings.ReplaceAll(remedy, macro, value)
		}
	}
	host, err := strconv.ParseUint(m.expand("{HOST.ID}"), 10, 64)
	if err != nil || host == 0 {
		return "", fmt.Errorf("a command runs on the host of a problem, and there is none; try it with 'tidemark host run HOST COMMAND': %w", ErrSettings)
	}
	out, err := c.Commander.RunCommand(ctx, model.HostID(host), remedy, line)
	if err == nil || !errors.Is(err, ctx.Err()) {
		return shorten([]byte(out)), err
	}
	return "", fmt.Errorf("the command was given and nothing was heard of it in time; it may have run: %w", err)
}
