package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"filippo.io/age"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tidemark/server"
	"tidemark/snapshot"
)

// repositoryFlags say how a repository of backups is reached.
type repositoryFlags struct {
	endpoint, region string
	encryptTo        []string
	identity         string
}

func (f *repositoryFlags) addTo(flags *pflag.FlagSet) {
	flags.StringVar(&f.endpoint, "s3-endpoint", "", "URL of an S3-compatible store (default AWS)")
	flags.StringVar(&f.region, "s3-region", "", "its region")
}

func (f *repositoryFlags) addIdentity(flags *pflag.FlagSet) {
	flags.StringVar(&f.identity, "identity", "", "file with the age identity (AGE-SECRET-KEY-1…) that decrypts the backup")
}

// open opens the repository at an address: a folder, or s3://BUCKET/PREFIX.
func (f *repositoryFlags) open(address string) (*snapshot.Repository, error) {
	r := &snapshot.Repository{}
	if strings.HasPrefix(address, "s3://") {
		store, err := snapshot.OpenBucket(address, f.endpoint, f.region)
		if err != nil {
			return nil, usageError{err}
		}
		r.Store = store
	} else {
		dir, err := filepath.Abs(address)
		if err != nil {
			return nil, err
		}
		r.Store = snapshot.FolderStore{Dir: dir}
	}
	for _, text := range f.encryptTo {
		recipient, err := age.ParseX25519Recipient(text)
		if err != nil {
			return nil, usagef("--encrypt-to %q: %w; expected an age recipient, age1…, as age-keygen prints it", text, err)
		}
		r.Recipients = append(r.Recipients, recipient)
	}
	if f.identity != "" {
		file, err := os.Open(f.identity)
		if err != nil {
			return nil, fmt.Errorf("--identity: %w", err)
		}
		defer file.Close()
		if r.Identities, err = age.ParseIdentities(io.LimitReader(file, 1<<20)); err != nil {
			return nil, usagef("--identity %s: %w", f.identity, err)
		}
	}
	return r, nil
}

// source opens a snapshot: a folder, or REPO#NAME, or REPO for its newest backup.
func (f *repositoryFlags) source(ctx context.Context, address string) (snapshot.Source, error) {
	place, name, named := strings.Cut(address, "#")
	if !strings.HasPrefix(place, "s3://") && !named {
		if _, err := os.Stat(filepath.Join(place, "backups")); err != nil {
			return snapshot.OpenFolder(place)
		}
	}
	r, err := f.open(place)
	if err != nil {
		return nil, err
	}
	return r.Open(ctx, name)
}

// backupFlags are the flags of store backup.
type backupFlags struct {
	repositoryFlags
	client serverClient
	name   string
	keep   int
	asJSON bool
}

func storeBackupCommand() *cobra.Command {
	f := &backupFlags{}
	c := &cobra.Command{
		Use:   "backup (DIR | --http ADDR) REPO",
		Short: "Copy everything as it is at one moment to a repository: a folder, or s3://BUCKET/PREFIX",
		Long: "Back a data folder up to a repository, of a stopped server (DIR) or a running one (--http). What the repository has already is not sent again. The key of a bucket\n" +
			"comes from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or from ~/.aws/credentials. A repository is for one server; two may not write to it at the same time.",
		Args: someArgs(1, 2, "DIR and REPO, or --http and REPO"),
		RunE: func(c *cobra.Command, args []string) error { return runBackup(c, f, args) },
	}
	f.client.addTo(c.Flags())
	f.addTo(c.Flags())
	c.Flags().StringArrayVar(&f.encryptTo, "encrypt-to", nil, "age recipient (age1…) that can read the backup; may be given several times")
	c.Flags().StringVar(&f.name, "name", "", "name of the backup (default: the time, in UTC)")
	c.Flags().IntVar(&f.keep, "keep", 0, "remove all but so many of the newest backups afterwards; 0 keeps all")
	c.Flags().BoolVar(&f.asJSON, "json", false, "print JSON")
	return c
}

func runBackup(c *cobra.Command, f *backupFlags, args []string) (err error) {
	if (f.client.address == "") != (len(args) == 2) || f.keep < 0 {
		return usagef("store backup expects DIR and REPO of a stopped server, or --http ADDR and REPO of a running one; see 'tidemark store backup --help'")
	}
	r, err := f.open(args[len(args)-1])
	if err != nil {
		return err
	}
	if f.name == "" {
		f.name = time.Now().UTC().Format("20060102T150405Z")
	}
	if err := snapshot.CheckName(f.name); err != nil {
		return usageError{err}
	}
	source, done, err := f.fix(c.Context(), args)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	line := newProgressLine(c.ErrOrStderr())
	saved, err := r.Save(c.Context(), source, f.name, func(p snapshot.Progress) { line.say(p.DoneBytes, p.TotalBytes, p.File) })
	if err != nil {
		return err
	}
	if f.keep > 0 {
		if saved.Removed, err = r.Keep(c.Context(), f.keep); err != nil {
			return fmt.Errorf("the backup is made, but old ones could not be removed: %w", err)
		}
	}
	if f.asJSON {
		return json.NewEncoder(c.OutOrStdout()).Encode(saved)
	}
	_, err = fmt.Fprintf(c.OutOrStdout(), "%s: %d files, %s, of which %d with %s are new; %d old backups removed\n",
		saved.Name, saved.Files, sizeText(saved.Bytes), saved.NewFiles, sizeText(saved.NewBytes), len(saved.Removed))
	return err
}

// fix fixes the moment and returns what is to be copied, and what lets go of it.
func (f *backupFlags) fix(ctx context.Context, args []string) (snapshot.Source, func() error, error) {
	if f.client.address == "" {
		data := filepath.Clean(args[0])
		made, err := server.SnapshotOffline(ctx, data, data+".backup", "", Version)
		if err != nil {
			return nil, nil, err
		}
		m, err := made.WithTails()
		if err != nil {
			return nil, nil, errors.Join(err, os.RemoveAll(made.Dir))
		}
		return &tailed{made.Folder, m}, func() error { return os.RemoveAll(made.Dir) }, nil
	}
	s := &remoteSnapshot{client: &f.client}
	if err := s.make(ctx); err != nil {
		return nil, nil, err
	}
	if err := s.ask(ctx); err != nil {
		return nil, nil, errors.Join(err, s.remove(ctx))
	}
	return s, func() error { return s.remove(ctx) }, nil
}

// tailed is a snapshot with the tails of its files.
type tailed struct {
	*snapshot.Folder
	manifest *snapshot.Manifest
}

func (t *tailed) Manifest() *snapshot.Manifest { return t.manifest }

// remoteSnapshot is one that a running server keeps while it is copied.
type remoteSnapshot struct {
	client   *serverClient
	kept     keptSnapshot
	path     string
	manifest *snapshot.Manifest
}

func (s *remoteSnapshot) Manifest() *snapshot.Manifest { return s.manifest }

// Open asks for a file.
func (s *remoteSnapshot) Open(ctx context.Context, f *snapshot.File) (io.ReadCloser, error) {
	answer, err := s.client.open(ctx, http.MethodGet, s.path+"/file?path="+url.QueryEscape(f.Path), nil)
	if err != nil {
		return nil, err
	}
	return answer.Body, nil
}

// make has the server make it.
func (s *remoteSnapshot) make(ctx context.Context) error {
	name := fmt.Sprintf("copy-%d", time.Now().UnixNano())
	if err := s.client.call(ctx, http.MethodPost, "/api/storage/snapshots", map[string]string{"name": name}, &s.kept); err != nil {
		return err
	}
	s.path = "/api/storage/snapshots/" + url.PathEscape(s.kept.Name)
	return nil
}

// ask asks which files the snapshot has.
func (s *remoteSnapshot) ask(ctx context.Context) error {
	var raw json.RawMessage
	err := s.client.call(ctx, http.MethodGet, s.path, nil, &raw)
	if err == nil {
		s.manifest, err = snapshot.DecodeManifest(raw)
	}
	return err
}

// remove has the server remove it, even when the copying was interrupted.
func (s *remoteSnapshot) remove(ctx context.Context) error {
	cleaning, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	return s.client.call(cleaning, http.MethodDelete, s.path, nil, nil)
}

func storeBackupsCommand() *cobra.Command {
	f := &repositoryFlags{}
	var asJSON bool
	c := &cobra.Command{
		Use:   "backups REPO",
		Short: "List the backups in a repository",
		Args:  someArgs(1, 1, "a folder or s3://BUCKET/PREFIX"),
		RunE: func(c *cobra.Command, args []string) error {
			r, err := f.open(args[0])
			if err != nil {
				return err
			}
			list, err := r.Backups(c.Context())
			if err != nil {
				return err
			}
			return printBackups(c.OutOrStdout(), list, asJSON)
		},
	}
	f.addTo(c.Flags())
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func printBackups(w io.Writer, list []*snapshot.Manifest, asJSON bool) error {
	type entry struct {
		Name      string    `json:"name"`
		CreatedAt time.Time `json:"created_at"`
		Files     int       `json:"files"`
		Bytes     int64     `json:"bytes"`
		Encrypted bool      `json:"encrypted"`
	}
	out := []entry{}
	for _, m := range list {
		out = append(out, entry{m.Name, m.CreatedAt, len(m.Files), m.Bytes(), m.Encrypted})
	}
	if asJSON {
		return json.NewEncoder(w).Encode(out)
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tTAKEN\tFILES\tSIZE\tENCRYPTED")
	for _, e := range out {
		fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%v\n", e.Name, e.CreatedAt.Format(time.RFC3339), e.Files, sizeText(e.Bytes), e.Encrypted)
	}
	return table.Flush()
}
