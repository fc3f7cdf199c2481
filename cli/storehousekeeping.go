package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"tidemark/storage/postgres"
)

func storeHousekeepingCommand() *cobra.Command {
	var client serverClient
	var asJSON bool
	c := &cobra.Command{
		Use:   "housekeeping --http ADDR",
		Short: "Say what a server on PostgreSQL keeps, what it drops next, and what it dropped",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if client.address == "" {
				return usagef("give --http, the address of the server")
			}
			var h postgres.Housekeeping
			if err := client.call(c.Context(), http.MethodGet, "/api/storage/housekeeping", nil, &h); err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(c.OutOrStdout()).Encode(h)
			}
			return printHousekeeping(c.OutOrStdout(), &h)
		},
	}
	client.addTo(c.Flags())
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func printHousekeeping(w io.Writer, h *postgres.Housekeeping) error {
	limit := "no limit"
	if h.LimitBytes > 0 {
		limit = sizeText(h.LimitBytes)
	}
	fmt.Fprintf(w, "%s in tables, %s; new tables are kept as %s\n", sizeText(h.SizeBytes), limit, h.Mode)
	fmt.Fprintf(w, "%s\n\n", roomLine(&h.Room))
	fmt.Fprintf(w, "%-20s %-10s %10s %10s %7s  %s\n", "table", "mode", "keeps", "size", "pieces", "next")
	for _, t := range h.Tables {
		keeps := "for ever"
		if t.KeepSeconds > 0 {
			keeps = fmt.Sprintf("%d d", t.KeepSeconds/86_400)
		}
		next := ""
		if n := t.Next; n != nil {
			next = fmt.Sprintf("%s, %s", n.Name, sizeText(n.Bytes))
			if n.DueAt > 0 {
				next += ", due " + time.Unix(n.DueAt, 0).Format(time.DateTime)
			}
		}
		fmt.Fprintf(w, "%-20s %-10s %10s %10s %7d  %s\n", t.Name, t.Mode, keeps, sizeText(t.Bytes), t.Pieces, next)
	}
	fmt.Fprintf(w, "\ndropped since the server started: %d\n", len(h.Dropped))
	for _, d := range h.Dropped {
		what := sizeText(d.Bytes) + " free"
		if d.Rows > 0 {
			what = fmt.Sprintf("%d rows deleted", d.Rows)
		}
		if _, err := fmt.Fprintf(w, "%s  %s, for %s: %s in %.1f ms\n", time.Unix(d.At, 0).Format(time.DateTime), d.Name, d.Reason, what, d.TookMs); err != nil {
			return err
		}
	}
	return nil
}

// roomLine says in a line how large the database is and when its room is used up.
func roomLine(r *postgres.Room) string {
	if r.MeasuredAt == 0 {
		return "the database was not measured yet"
	}
	line := "database " + sizeText(r.DatabaseBytes)
	if r.WALBytes != nil {
		line += ", write-ahead log " + sizeText(*r.WALBytes)
	}
	if r.GrowthPerDay != nil {
		line += fmt.Sprintf(", grows by %s a day", sizeText(int64(*r.GrowthPerDay)))
	}
	if r.UsedPercent == nil {
		return line + "; its room is not known: set storage.database_space"
	}
	line += fmt.Sprintf("; %.1f %% of %s used", *r.UsedPercent, sizeText(r.TotalBytes))
	if r.FullDays != nil {
		line += fmt.Sprintf(", full in %.0f days", *r.FullDays)
	}
	return line
}
