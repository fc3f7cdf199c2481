package collectors

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"tidemark/collect/external"
)

// maxOutputBytes bounds what is kept of what a command prints.
const maxOutputBytes = 512 << 10

// RunHere runs a command on this machine by a shell and returns what it printed, on both of its outputs. It is killed with its children after
// CommandTime.
func RunHere(ctx context.Context, command string) (string, error) {
	if err := CheckCommand(command); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, CommandTime)
	defer cancel()
	p := external.Program{Path: "/bin/sh", Arguments: []string{"-c", command}, Folder: "/", LimitBytes: maxOutputBytes, Cut: true}
	out, err := p.Run(ctx)
	text := strings.TrimRight(strings.ToValidUTF8(string(out), "?"), "\n")
	var ended *external.EndedError
	switch {
	case errors.As(err, &ended):
		return "", fmt.Errorf("the command failed: %w: %s", err, text)
	case err != nil:
		return "", fmt.Errorf("the command: %w", err)
	}
	return text, nil
}
