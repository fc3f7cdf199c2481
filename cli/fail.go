package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// usageError is a call that cannot be carried out as it was written; it exits with 2.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

// usagef makes a usageError.
func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// interrupted names the end of a command by Ctrl-C or SIGTERM for what it is.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) && !errors.Is(err, errSilent) {
		return errors.New("stopped before the end")
	}
	return err
}

// fail prints the error and returns the exit code.
func fail(stderr io.Writer, err error) int {
	if errors.Is(err, errSilent) {
		return 1
	}
	fmt.Fprintf(stderr, "tidemark: %v\n", err)
	var usage usageError
	if errors.As(err, &usage) || strings.HasPrefix(err.Error(), "unknown command") {
		return 2
	}
	return 1
}
