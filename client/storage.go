package client

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
)

// Storage returns the room that the store has: disk, quota, snapshots, re-compression, forecasts and advice.
func (c *Client) Storage(ctx context.Context) (Storage, error) {
	return get[Storage](ctx, c, "/api/storage", nil)
}

// StorageClasses returns what values of each kind take, reckoned from a sample.
func (c *Client) StorageClasses(ctx context.Context) (StorageClasses, error) {
	return get[StorageClasses](ctx, c, "/api/storage/classes", nil)
}

// StorageHosts returns what each host takes, at most 100 of them, and what it may take before its oldest values go first.
func (c *Client) StorageHosts(ctx context.Context) (HostShares, error) {
	return get[HostShares](ctx, c, "/api/storage/hosts", nil)
}

// StorageFolder returns where the engine's files are, for tools on the same machine. The caller must be an administrator.
func (c *Client) StorageFolder(ctx context.Context) (StorageFolder, error) {
	return get[StorageFolder](ctx, c, "/api/storage/folder", nil)
}

// StorageTrial returns the report of the last trial of codecs.
func (c *Client) StorageTrial(ctx context.Context) (LastTrial, error) {
	return get[LastTrial](ctx, c, "/api/storage/trial", nil)
}

// StorageDigest returns a sum of all values from one time up to another, Unix nanoseconds, the same whatever the codec.
func (c *Client) StorageDigest(ctx context.Context, from, to int64) (Digest, error) {
	query := url.Values{"from": {strconv.FormatInt(from, 10)}, "to": {strconv.FormatInt(to, 10)}}
	return get[Digest](ctx, c, "/api/storage/digest", query)
}

// Housekeeping returns the tables of values with their retention and what is dropped next; IsNotFound for a server that keeps them in the embedded engine.
func (c *Client) Housekeeping(ctx context.Context) (Housekeeping, error) {
	return get[Housekeeping](ctx, c, "/api/storage/housekeeping", nil)
}

// Retention returns how long values and trends of all items are kept, whatever the items say.
func (c *Client) Retention(ctx context.Context) (Retention, error) {
	return get[Retention](ctx, c, "/api/storage/retention", nil)
}

// SetRetention changes it, in force at once. The caller must be an administrator.
func (c *Client) SetRetention(ctx context.Context, r RetentionBody) (Retention, error) {
	return change[Retention](ctx, c, http.MethodPut, "/api/storage/retention", r)
}

// Recompression returns the re-compression that is under way, or the last one.
func (c *Client) Recompression(ctx context.Context) (RecompressState, error) {
	return get[RecompressState](ctx, c, "/api/storage/recompress", nil)
}

// Recompress starts writing old file pairs anew, smaller. The caller must be an administrator.
func (c *Client) Recompress(ctx context.Context, r RecompressRequest) (RecompressState, error) {
	return change[RecompressState](ctx, c, http.MethodPost, "/api/storage/recompress", r)
}

// StopRecompression stops it; pairs that are done stay done. The caller must be an administrator.
func (c *Client) StopRecompression(ctx context.Context) (RecompressState, error) {
	return change[RecompressState](ctx, c, http.MethodDelete, "/api/storage/recompress", nil)
}

// Snapshots returns the kept snapshots, the oldest first.
func (c *Client) Snapshots(ctx context.Context) (SnapshotList, error) {
	return get[SnapshotList](ctx, c, "/api/storage/snapshots", nil)
}

// MakeSnapshot makes a snapshot in the data folder; an empty name is one with the time. The caller must be an administrator. Large ones take longer than
// DefaultTimeout: give Options.HTTP then.
func (c *Client) MakeSnapshot(ctx context.Context, name string) (Snapshot, error) {
	return change[Snapshot](ctx, c, http.MethodPost, "/api/storage/snapshots", map[string]string{"name": name})
}

// DeleteSnapshot removes a kept snapshot and returns the others. The caller must be an administrator.
func (c *Client) DeleteSnapshot(ctx context.Context, name string) (SnapshotList, error) {
	return change[SnapshotList](ctx, c, http.MethodDelete, "/api/storage/snapshots/"+url.PathEscape(name), nil)
}

// SnapshotManifest returns the files of a snapshot with sizes and checksums. The caller must be an administrator.
func (c *Client) SnapshotManifest(ctx context.Context, name string) (SnapshotManifest, error) {
	return get[SnapshotManifest](ctx, c, "/api/storage/snapshots/"+url.PathEscape(name), nil)
}

// SnapshotFile returns the bytes of one file of a snapshot, by its path in the manifest, as a stream that the caller must close. The caller must be an
// administrator.
func (c *Client) SnapshotFile(ctx context.Context, name, path string) (io.ReadCloser, error) {
	answer, err := c.Open(ctx, Request{Path: "/api/storage/snapshots/" + url.PathEscape(name) + "/file", Query: url.Values{"path": {path}}})
	if err != nil {
		return nil, err
	}
	return answer.Body, nil
}
