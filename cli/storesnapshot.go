package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tidemark/server"
	"tidemark/snapshot"
	"tidemark/storage/dbengine"
)

// snapshotFlags are the flags of store snapshot.
type snapshotFlags struct {
	client      serverClient
	since, name string
	asJSON      bool
}

// snapshotReport is what store snapshot says.
type snapshotReport struct {
	Name  string `json:"name"`
	Dir   string `json:"dir,omitempty"`
	Files int    `json:"files"`
	Bytes int64  `json:"bytes"`
	// HeldMs is how long the moment of the snapshot took, in milliseconds.
	HeldMs float64 `json:"held_ms"`
	Copied bool    `json:"copied"`
}

func storeSnapshotCommand() *cobra.Command {
	f := &snapshotFlags{}
	c := &cobra.Command{
		Use:   "snapshot (DIR | --http ADDR) TO",
		Short: "Make a copy of everything as it is at one moment, while writing goes on",
		Long: "Make a snapshot of a data folder: values, catalog and configuration as they were at one moment. TO is a new folder. In the file system of the data\n" +
			"folder it consists of hard links and takes less than a second whatever the size, of a stopped server and with --http of a running one; elsewhere, and\n" +
			"from another machine, the files are copied after the moment is fixed. With --http and --name the snapshot stays with the server, in snapshots/ of its data folder.",
		Args: someArgs(0, 2, "DIR and TO, or --http and TO or --name"),
		RunE: func(c *cobra.Command, args []string) error { return runSnapshot(c, f, args) },
	}
	f.client.addTo(c.Flags())
	c.Flags().StringVar(&f.since, "since", "", "snapshot whose files are not copied again: they are linked, or left where they are if links are impossible")
	c.Flags().StringVar(&f.name, "name", "", "with --http: keep the snapshot on the server under this name")
	c.Flags().BoolVar(&f.asJSON, "json", false, "print JSON")
	return c
}

func runSnapshot(c *cobra.Command, f *snapshotFlags, args []string) error {
	var r *snapshotReport
	var err error
	switch {
	case f.client.address == "" && len(args) == 2 && f.name == "":
		r, err = snapshotFolder(c, args[0], args[1], f.since)
	case f.client.address != "" && len(args) == 1 && f.name == "":
		r, err = f.download(c, args[0])
	case f.client.address != "" && len(args) == 0 && f.name != "" && f.since == "":
		r, err = f.keep(c.Context(), f.name)
	default:
		return usagef("store snapshot expects DIR and TO of a stopped server, --http ADDR and TO of a running one, or --http ADDR and --name; see 'tidemark store snapshot --help'")
	}
	if err != nil {
		return err
	}
	if f.asJSON {
		return json.NewEncoder(c.OutOrStdout()).Encode(r)
	}
	how := "linked"
	if r.Copied {
		how = "copied"
	}
	place := r.Dir
	if place == "" {
		place = "the server's snapshots/" + r.Name
	}
	_, err = fmt.Fprintf(c.OutOrStdout(), "%s: %d files, %s, %s; the moment was fixed in %.1f ms\n", place, r.Files, sizeText(r.Bytes), how, r.HeldMs)
	return err
}

// sizeText is a size for people.
func sizeText(n int64) string {
	for _, u := range []struct {
		name  string
		bytes int64
	}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if n >= u.bytes {
			return fmt.Sprintf("%.1f %s", float64(n)/float64(u.bytes), u.name)
		}
	}
	return fmt.Sprintf("%d B", n)
}

// counted writes a number with its noun: "1 pair", "2 pairs"; one that ends in s stays.
func counted[N int | int64 | uint64](n N, one string) string {
	if n != 1 && !strings.HasSuffix(one, "s") {
		one += "s"
	}
	return fmt.Sprintf("%d %s", n, one)
}

func reportOf(s *snapshot.Folder, dir string, held time.Duration) *snapshotReport {
	m := s.Manifest()
	return &snapshotReport{
		Name: m.Name, Dir: dir, Files: len(m.Files), Bytes: m.Bytes(), HeldMs: float64(held.Microseconds()) / 1000, Copied: s.Copied,
	}
}

func snapshotFolder(c *cobra.Command, data, to, since string) (*snapshotReport, error) {
	made, err := server.SnapshotOffline(c.Context(), data, to, since, Version)
	if errors.Is(err, server.ErrInUse) {
		return nil, fmt.Errorf("%w; of a running server take the snapshot with --http", err)
	}
	if err != nil {
		return nil, err
	}
	return reportOf(made.Folder, to, made.Took), nil
}

// keptSnapshot is a snapshot as the server's API tells of it.
type keptSnapshot struct {
	Name      string  `json:"name"`
	CreatedAt int64   `json:"created_at"`
	Bytes     int64   `json:"bytes"`
	Files     int     `json:"files"`
	TookMs    float64 `json:"took_ms"`
	Copied    bool    `json:"copied"`
}

func (f *snapshotFlags) keep(ctx context.Context, name string) (*snapshotReport, error) {
	var kept keptSnapshot
	if err := f.client.call(ctx, http.MethodPost, "/api/storage/snapshots", map[string]string{"name": name}, &kept); err != nil {
		return nil, err
	}
	return &snapshotReport{Name: kept.Name, Files: kept.Files, Bytes: kept.Bytes, HeldMs: kept.TookMs, Copied: kept.Copied}, nil
}

// download has the server fix the moment, copies the files, and removes the server's snapshot.
func (f *snapshotFlags) download(c *cobra.Command, to string) (r *snapshotReport, err error) {
	ctx := c.Context()
	var since *snapshot.Folder
	if f.since != "" {
		if since, err = snapshot.OpenFolder(f.since); err != nil {
			return nil, err
		}
	}
	w, err := snapshot.Create(to, since)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.Abort())
		}
	}()
	remote := &remoteSnapshot{client: &f.client}
	if err := remote.make(ctx); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, remote.remove(ctx)) }()
	line := newProgressLine(c.ErrOrStderr())
	near := f.near(ctx, remote.kept.Name)
	if near != nil {
		err = w.Take(ctx, near, func(p snapshot.Progress) { line.say(p.DoneBytes, p.TotalBytes, p.File) })
		remote.manifest = near.Manifest()
	} else if err = remote.ask(ctx); err == nil {
		err = fetchAll(ctx, w, remote, line)
	}
	if err != nil {
		return nil, err
	}
	m := remote.manifest
	folder, err := w.Commit(m.Version, m.LSN, m.CreatedAt)
	if err != nil {
		return nil, err
	}
	folder.Copied = folder.Copied || near == nil
	return reportOf(folder, to, time.Duration(remote.kept.TookMs*float64(time.Millisecond))), nil
}

// fetchAll asks the server for each file.
func fetchAll(ctx context.Context, w *snapshot.Writer, remote *remoteSnapshot, line *progressLine) error {
	done := int64(0)
	for i := range remote.manifest.Files {
		file := &remote.manifest.Files[i]
		line.say(done, remote.manifest.Bytes(), file.Path)
		if err := w.Fetch(ctx, *file, func() (io.ReadCloser, error) { return remote.Open(ctx, file) }); err != nil {
			return fmt.Errorf("copy %s: %w", file.Path, err)
		}
		done += file.Bytes
	}
	return nil
}

// near is the folder of a snapshot that the server keeps, if it is on this machine and may be read; else nil.
func (f *snapshotFlags) near(ctx context.Context, name string) *snapshot.Folder {
	engine, err := f.client.storageFolder(ctx)
	if err != nil {
		return nil
	}
	folder, err := snapshot.OpenFolder(filepath.Join(filepath.Dir(engine), server.SnapshotsFolder, name))
	if err != nil {
		return nil
	}
	linked := false
	for i := range folder.Manifest().Files {
		file := &folder.Manifest().Files[i]
		if file.SHA256 == "" && linked {
			continue // of the engine's files one tells of all
		}
		linked = linked || file.SHA256 == ""
		in, err := folder.Open(ctx, file)
		if err != nil {
			return nil // the server may read it, and sends it
		}
		_ = in.Close()
	}
	return folder
}

func storeVerifyCommand() *cobra.Command {
	var asJSON bool
	f := &repositoryFlags{}
	c := &cobra.Command{
		Use:   "verify SNAP",
		Short: "Read every byte of a snapshot or backup and compare it with its checksums",
		Long:  "SNAP is the folder of a snapshot, or a repository of backups (REPO#NAME, or REPO for the newest).",
		Args:  someArgs(1, 1, "the folder of a snapshot, or a repository"),
		RunE: func(c *cobra.Command, args []string) error {
			s, err := f.source(c.Context(), args[0])
			if err != nil {
				return err
			}
			return runVerify(c, s, args[0], asJSON)
		},
	}
	f.addTo(c.Flags())
	f.addIdentity(c.Flags())
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// runVerify compares files with the manifest, and what is in the engine's files with their own checksums.
func runVerify(c *cobra.Command, s snapshot.Source, name string, asJSON bool) error {
	line := newProgressLine(c.ErrOrStderr())
	list, err := snapshot.Verify(c.Context(), s, func(p snapshot.Progress) { line.say(p.DoneBytes, p.TotalBytes, p.File) })
	if err != nil {
		return err
	}
	// Backups have a SHA-256 of everything. An engine that never got a value has no files.
	if folder, ok := s.(*snapshot.Folder); ok && len(list) == 0 && hasEngine(s.Manifest()) {
		line = newProgressLine(c.ErrOrStderr())
		findings, err := dbengine.Check(snapshot.NewView(folder, "engine"), "engine", func(p dbengine.Progress) { line.say(p.DoneBytes, p.TotalBytes, p.File) })
		if err != nil {
			return err
		}
		for _, f := range findings {
			if f.Damage {
				list = append(list, snapshot.Damage{File: "engine/" + f.File, Text: f.String()})
			}
		}
	}
	return sayVerified(c, name, s.Manifest(), list, asJSON)
}

func hasEngine(m *snapshot.Manifest) bool {
	return slices.ContainsFunc(m.Files, func(f snapshot.File) bool { return strings.HasPrefix(f.Path, "engine/") })
}

func sayVerified(c *cobra.Command, name string, m *snapshot.Manifest, list []snapshot.Damage, asJSON bool) error {
	var err error
	if asJSON {
		if list == nil {
			list = []snapshot.Damage{}
		}
		err = json.NewEncoder(c.OutOrStdout()).Encode(struct {
			Files   int               `json:"files"`
			Bytes   int64             `json:"bytes"`
			Damaged []snapshot.Damage `json:"damaged"`
		}{len(m.Files), m.Bytes(), list})
	} else {
		for _, d := range list {
			fmt.Fprintf(c.OutOrStdout(), "%s: %s\n", d.File, d.Text)
		}
		_, err = fmt.Fprintf(c.OutOrStdout(), "%s: snapshot of %s, %d files, %s, %d damaged\n", name, m.CreatedAt.Format(time.RFC3339), len(m.Files), sizeText(m.Bytes()), len(list))
	}
	if err == nil && len(list) > 0 {
		err = errSilent
	}
	return err
}

func storeRestoreCommand() *cobra.Command {
	var asJSON bool
	f := &repositoryFlags{}
	c := &cobra.Command{
		Use:   "restore SNAP DIR",
		Short: "Make a data folder of a snapshot or backup",
		Long:  "SNAP is the folder of a snapshot, or a repository of backups (REPO#NAME, or REPO for the newest). DIR is a new folder.",
		Args:  someArgs(2, 2, "a snapshot or repository, and a new data folder"),
		RunE: func(c *cobra.Command, args []string) error {
			s, err := f.source(c.Context(), args[0])
			if err != nil {
				return err
			}
			return runRestore(c, s, args[1], asJSON)
		},
	}
	f.addTo(c.Flags())
	f.addIdentity(c.Flags())
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func runRestore(c *cobra.Command, s snapshot.Source, dir string, asJSON bool) error {
	line, began := newProgressLine(c.ErrOrStderr()), time.Now()
	if err := snapshot.Restore(c.Context(), s, dir, func(p snapshot.Progress) { line.say(p.DoneBytes, p.TotalBytes, p.File) }); err != nil {
		return err
	}
	m := s.Manifest()
	if asJSON {
		return json.NewEncoder(c.OutOrStdout()).Encode(struct {
			Dir       string    `json:"dir"`
			CreatedAt time.Time `json:"created_at"`
			Files     int       `json:"files"`
			Bytes     int64     `json:"bytes"`
			Seconds   float64   `json:"seconds"`
		}{dir, m.CreatedAt, len(m.Files), m.Bytes(), time.Since(began).Seconds()})
	}
	_, err := fmt.Fprintf(c.OutOrStdout(), "%s: as of %s, %d files, %s; start the server with --data %s\n", dir, m.CreatedAt.Format(time.RFC3339), len(m.Files), sizeText(m.Bytes()), dir)
	return err
}
