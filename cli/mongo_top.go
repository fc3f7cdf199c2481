package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"tidemark/sniff"
)

func mongoTopCommand() *cobra.Command {
	source := &mongoSource{}
	var once, asJSON bool
	seconds := 5.0
	c := &cobra.Command{
		Use:   "top -i INTERFACE|--pcap FILE [--port N]…",
		Short: "Show live which requests load a MongoDB server",
		Long: "Watch MongoDB requests on a network interface, or replay a capture file, and show the shapes of requests with the most load. Load is time\n" +
			"spent per second: 100 % is one request at every moment. Without a terminal, or with --once, one table is printed after --seconds.",
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			out, isFile := c.OutOrStdout().(*os.File)
			interactive := !once && !asJSON && isFile && term.IsTerminal(out.Fd())
			w, err := source.open(interactive, c.ErrOrStderr())
			if err != nil {
				return err
			}
			defer w.source.Close()
			if interactive {
				return runTop(c.Context(), w, out)
			}
			return printTop(c.Context(), w, c.OutOrStdout(), time.Duration(seconds*float64(time.Second)), asJSON)
		},
	}
	source.add(c, true)
	c.Flags().BoolVar(&once, "once", false, "print one table and end")
	c.Flags().BoolVar(&asJSON, "json", false, "print one view as JSON and end")
	floatFlag(c.Flags(), &seconds, "seconds", 0, mostSeconds, "how long to watch an interface before the one table is printed")
	return c
}

// printTop watches for a time, or to the end of a file, and prints one view.
func printTop(ctx context.Context, w *watch, out io.Writer, length time.Duration, asJSON bool) error {
	if w.live {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, length)
		defer cancel()
	}
	live := sniff.NewLive()
	err := w.run(ctx, func(from, to int64) { live.Take(w.sniffer, from, to) })
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	v := live.View(sniff.ByLoad, "")
	if asJSON {
		e := json.NewEncoder(out)
		e.SetEscapeHTML(false)
		return e.Encode(struct {
			sniff.View
			Lost sniff.Losses `json:"lost"`
		}{v, v.Counters.Losses()})
	}
	t := topScreen{name: w.name, view: v, width: plainWidth}
	_, werr := fmt.Fprintln(out, t.plain())
	return errors.Join(err, werr)
}

// plainWidth is how wide the table is that is not shown on a terminal.
const plainWidth = 160

// runTop shows the live table until the user ends it. The table stays when a file has come to its end.
func runTop(ctx context.Context, w *watch, out *os.File) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	live := sniff.NewLive()
	p := tea.NewProgram(newTopScreen(w.name, live), tea.WithContext(ctx), tea.WithOutput(out))
	done := make(chan error, 1)
	go func() {
		err := w.run(ctx, func(from, to int64) {
			live.Take(w.sniffer, from, to)
			p.Send(topTick{})
		})
		p.Send(topEnd{err})
		done <- err
	}()
	_, err := p.Run()
	stop()
	if err := <-done; err != nil {
		return err
	}
	if errors.Is(err, tea.ErrInterrupted) || errors.Is(err, tea.ErrProgramKilled) {
		return nil
	}
	return err
}
