package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"tidemark/internal/vfs"
	"tidemark/storage/dbengine"
)

func storeCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "store",
		Short: "Look into the store, copy it, restore it: info, check, dump, repair, plan, bench, snapshot, verify, restore, backup, trial, recompress, advise, migrate",
		Args:  noArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(storeInfoCommand(), storeCheckCommand(), storeDumpCommand(), storeRepairCommand(), storePlanCommand(), storeBenchCommand(),
		storeSnapshotCommand(), storeVerifyCommand(), storeRestoreCommand(), storeBackupCommand(), storeBackupsCommand())
	c.AddCommand(storeMigrateCommand(), storeRecompressCommand(), storeAdviseCommand(), storeHousekeepingCommand(), storeTrialCommand(), storePromoteCommand(), storeHandOverCommand(), storeDigestCommand())
	return c
}

// engineFolder accepts a data folder or its engine/.
func engineFolder(dir string) (string, error) {
	inner := filepath.Join(dir, "engine")
	if info, err := os.Stat(inner); err == nil && info.IsDir() {
		return inner, nil
	}
	if info, err := os.Stat(dir); err != nil {
		return "", fmt.Errorf("store: %w", err)
	} else if !info.IsDir() {
		return "", usagef("%s is a file; expected a data folder or its engine folder", dir)
	}
	return dir, nil
}

func storeInfoCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "info DIR",
		Short: "Say what a store holds",
		Args:  someArgs(1, 1, "a data folder or its engine folder"),
		RunE: func(c *cobra.Command, args []string) error {
			dir, err := engineFolder(args[0])
			if err != nil {
				return err
			}
			hosts, err := hostsOf(c.Context(), filepath.Join(args[0], "catalog"))
			if err != nil {
				return err
			}
			info, err := dbengine.Info(vfs.OS{}, dir, hosts)
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(c.OutOrStdout()).Encode(info)
			}
			return printInfo(c.OutOrStdout(), dir, info)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func printInfo(w io.Writer, dir string, i *dbengine.Information) error {
	day := func(at int64) string {
		if at == 0 {
			return "-"
		}
		return time.Unix(0, at).Format(time.RFC3339)
	}
	// The log has its full size from the first value on; a mean with it would say nothing, and so does one of the few values that are not only there.
	perSample := ""
	switch packed, bytes := i.Samples-i.LogSamples, i.Bytes-i.LogBytes; {
	case packed == 0 || bytes <= 0:
	case packed < i.LogSamples:
		perSample = "; most samples are still only in the log: what one takes cannot be told yet"
	default:
		perSample = fmt.Sprintf(", %.3f bytes a sample without the log", float64(bytes)/float64(packed))
	}
	_, err := fmt.Fprintf(w, "%s: %s of %s in %s%s\n%s, %s, %s; log %s with %s only there\nfrom %s to %s\ndirect I/O: %s\n",
		dir, counted(i.Samples, "sample"), counted(i.Series, "series"), sizeText(i.Bytes), perSample, counted(i.Pairs, "pair"), counted(i.Extents, "extent"), counted(i.Pages, "page"), sizeText(i.LogBytes), counted(i.LogSamples, "sample"), day(i.From), day(i.To), i.DirectIO)
	if err == nil && i.Quarantine > 0 {
		_, err = fmt.Fprintf(w, "%d damaged files are set aside in quarantine/\n", i.Quarantine)
	}
	return err
}

func storeCheckCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "check DIR",
		Short: "Compare every byte of a stopped store with its checksums",
		Args:  someArgs(1, 1, "a data folder or its engine folder"),
		RunE: func(c *cobra.Command, args []string) error {
			dir, err := engineFolder(args[0])
			if err != nil {
				return err
			}
			return runCheck(c, dir, asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func runCheck(c *cobra.Command, dir string, asJSON bool) error {
	said := time.Now()
	findings, err := dbengine.Check(vfs.OS{}, dir, func(p dbengine.Progress) {
		if time.Since(said) > time.Second && p.TotalBytes > 0 {
			said = time.Now()
			fmt.Fprintf(c.ErrOrStderr(), "%3d %% %s\n", 100*p.DoneBytes/p.TotalBytes, p.File)
		}
	})
	if err != nil {
		return err
	}
	damage := 0
	for _, f := range findings {
		if f.Damage {
			damage++
		}
	}
	if asJSON {
		if findings == nil {
			findings = []dbengine.Finding{}
		}
		err = json.NewEncoder(c.OutOrStdout()).Encode(struct {
			Damage   int                `json:"damage"`
			Findings []dbengine.Finding `json:"findings"`
		}{damage, findings})
	} else {
		for _, f := range findings {
			fmt.Fprintln(c.OutOrStdout(), f)
		}
		_, err = fmt.Fprintf(c.OutOrStdout(), "%s: %d damaged places, %d notes\n", dir, damage, len(findings)-damage)
	}
	if err == nil && damage > 0 {
		err = errSilent
	}
	return err
}

func storeDumpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "dump DIR|FILE",
		Short: "Print what a store or one of its files holds, in the words of the format",
		Args:  someArgs(1, 1, "a data folder, its engine folder, or one file"),
		RunE: func(c *cobra.Command, args []string) error {
			name := args[0]
			if info, err := os.Stat(name); err == nil && info.IsDir() {
				dir, err := engineFolder(name)
				if err != nil {
					return err
				}
				name = dir
			}
			err := dbengine.Dump(vfs.OS{}, name, c.OutOrStdout())
			if errors.Is(err, os.ErrClosed) {
				return nil
			}
			return err
		},
	}
}
