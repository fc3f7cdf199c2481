package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"tidemark/api/rest"
	"tidemark/sniff"
	"tidemark/sniff/capture"
	"tidemark/sniff/reqstat"
)

func mongoCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "mongo",
		Short: "Watch MongoDB requests on the wire",
		Args:  noArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(mongoTopCommand(), mongoReportCommand(), mongoExportCommand())
	return c
}

func mongoReportCommand() *cobra.Command {
	var file string
	var ports []string
	var asJSON bool
	c := &cobra.Command{
		Use:   "report --pcap FILE [--port N]…",
		Short: "Say which requests a capture file holds and what they cost",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if file == "" {
				return usagef("--pcap FILE is missing: name a pcap or pcapng file, or - for standard input")
			}
			numbers, err := parsePorts(ports)
			if err != nil {
				return err
			}
			r, err := reportFile(c, file, numbers)
			if err != nil {
				return err
			}
			if asJSON {
				e := json.NewEncoder(c.OutOrStdout())
				e.SetEscapeHTML(false)
				return e.Encode(r)
			}
			return printMongoReport(c.OutOrStdout(), r)
		},
	}
	c.Flags().StringVar(&file, "pcap", "", "capture file, pcap or pcapng; - for standard input")
	c.Flags().StringArrayVar(&ports, "port", nil, "port of a MongoDB server; may be given several times (default: find MongoDB by content)")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func parsePorts(texts []string) ([]uint16, error) {
	var ports []uint16
	for _, t := range texts {
		n, err := strconv.ParseUint(t, 10, 16)
		if err != nil || n == 0 {
			return nil, usagef("--port %q: expected a number from 1 to 65535", t)
		}
		ports = append(ports, uint16(n))
	}
	return ports, nil
}

func reportFile(c *cobra.Command, name string, ports []uint16) (*sniff.Report, error) {
	in := io.Reader(c.InOrStdin())
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		in = file
	}
	source, err := capture.NewFile(in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	s, err := sniff.New(sniff.Options{Ports: ports})
	if err != nil {
		return nil, err
	}
	switch err := s.ReadAll(source); {
	case errors.Is(err, io.ErrUnexpectedEOF):
		// A capture that was ended by force; what it holds is worth a report.
		fmt.Fprintf(c.ErrOrStderr(), "tidemark: %s: %v; the report is of what came before\n", name, err)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	r := s.Report()
	return &r, nil
}

// printMongoCodes prints which errors the shapes had; nothing when there were none.
func printMongoCodes(w io.Writer, shapes []sniff.ShapeReport) {
	head := "\nerrors\t  code\n"
	for i := range shapes {
		for _, c := range shapes[i].Codes {
			code := strconv.Itoa(int(c.Code))
			if c.Code == reqstat.OtherCode {
				code = "other"
			}
			if name := rest.MongoCodeName(code); name != "" {
				code += " " + name
			}
			fmt.Fprintf(w, "%s%d\t  %s: %s  %s\n", head, c.Count, code, shapes[i].Namespace, shapes[i].Shape)
			head = ""
		}
	}
}

func printMongoReport(w io.Writer, r *sniff.Report) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "%d packets, %d duplicates, %d MongoDB connections, %d encrypted; %d gaps, %d requests and %d replies without the other\n",
		r.Packets, r.Duplicates, r.Flows, r.EncryptedFlows, r.Gaps, r.Unmatched.Requests, r.Unmatched.Replies)
	for _, kind := range slices.Sorted(maps.Keys(r.Malformed)) {
		fmt.Fprintf(t, "%d not understood: %s\n", r.Malformed[kind], kind)
	}
	fmt.Fprintf(t, "\ntime ms\trequests\terrors\tp50 ms\tp95 ms\tp99 ms\tmax ms\t  shape\n")
	for _, s := range r.Shapes {
		fmt.Fprintf(t, "%.1f\t%d\t%d\t%.2f\t%.2f\t%.2f\t%.2f\t  %s  %s\n", s.TimeMillis, s.Requests, s.Errors, s.P50Millis, s.P95Millis, s.P99Millis, s.MaxMillis, s.Namespace, s.Shape)
	}
	printMongoCodes(t, r.Shapes)
	fmt.Fprintf(t, "\nrequests\terrors\tno answer\trequest bytes\treply bytes\t  command\n")
	for _, c := range slices.Concat(r.Commands, r.Monitoring, r.Cluster) {
		fmt.Fprintf(t, "%d\t%d\t%d\t%d\t%d\t  %s %s\n", c.Requests, c.Errors, c.Unacknowledged, c.RequestBytes, c.ReplyBytes, c.Namespace, c.Command)
	}
	return t.Flush()
}
