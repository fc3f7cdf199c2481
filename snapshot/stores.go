package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// FolderStore keeps objects as files.
type FolderStore struct{ Dir string }

func (s FolderStore) name(key string) (string, error) {
	if !filepath.IsLocal(key) {
		return "", fmt.Errorf("%q is no key of an object", key)
	}
	return filepath.Join(s.Dir, filepath.FromSlash(key)), nil
}

// Put writes a file beside its name, syncs it, and gives it its name.
func (s FolderStore) Put(ctx context.Context, key string, r io.Reader, _ int64) error {
	name, err := s.name(key)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
		return err
	}
	temporary := name + partial
	if err := os.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, _, err := writeFile(ctx, r, temporary, 0o600); err != nil {
		return errors.Join(err, os.Remove(temporary))
	}
	if err := os.Rename(temporary, name); err != nil {
		return err
	}
	return syncPath(filepath.Dir(name))
}

// Get opens a file.
func (s FolderStore) Get(_ context.Context, key string) (io.ReadCloser, error) {
	name, err := s.name(key)
	if err != nil {
		return nil, err
	}
	return os.Open(name)
}

// List lists the files of a folder.
func (s FolderStore) List(_ context.Context, prefix string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(s.Dir, filepath.FromSlash(prefix)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var keys []string
	for _, e := range entries {
		if e.Type().IsRegular() && !strings.HasSuffix(e.Name(), partial) {
			keys = append(keys, path.Join(prefix, e.Name()))
		}
	}
	return keys, err
}

// Remove removes a file.
func (s FolderStore) Remove(_ context.Context, key string) error {
	name, err := s.name(key)
	if err != nil {
		return err
	}
	return os.Remove(name)
}

// BucketStore keeps objects in a bucket of an S3-compatible store.
type BucketStore struct {
	client         *minio.Client
	bucket, prefix string
}

// partBytes is what a large object is sent in: it is held in memory, and 10,000 parts are the most.
const partBytes = 16 << 20

// OpenBucket reads an address s3://BUCKET/PREFIX. endpoint is a URL; empty is AWS. The key comes from AWS_ACCESS_KEY_ID and
// AWS_SECRET_ACCESS_KEY, from ~/.aws/credentials, or from the machine's role.
func OpenBucket(address, endpoint, region string) (*BucketStore, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "s3" || u.Host == "" {
		return nil, fmt.Errorf("%q: expected s3://BUCKET/PREFIX", address)
	}
	if endpoint == "" {
		endpoint = "https://s3.amazonaws.com"
	}
	e, err := url.Parse(endpoint)
	if err != nil || e.Host == "" || e.Scheme != "https" && e.Scheme != "http" {
		return nil, fmt.Errorf("endpoint %q: expected a URL, such as https://s3.example.com:7070", endpoint)
	}
	client, err := minio.New(e.Host, &minio.Options{
		Creds: credentials.NewChainCredentials([]credentials.Provider{
			&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}, &credentials.IAM{Client: &http.Client{}},
		}),
		Secure: e.Scheme == "https", Region: region,
	})
	if err != nil {
		return nil, err
	}
	prefix := strings.Trim(u.Path, "/")
	if prefix != "" {
		prefix += "/"
	}
	return &BucketStore{client: client, bucket: u.Host, prefix: prefix}, nil
}

// Put sends an object; a store shows it only when it is whole.
func (s *BucketStore) Put(ctx context.Context, key string, r io.Reader, sizeBytes int64) error {
	_, err := s.client.PutObject(ctx, s.bucket, s.prefix+key, r, sizeBytes, minio.PutObjectOptions{PartSize: partBytes, ContentType: "application/octet-stream"})
	return s.wrap("store", key, err)
}

// Get asks for an object.
func (s *BucketStore) Get(ctx context.Context, key string) (io.ReadCloser, error) {
	o, err := s.client.GetObject(ctx, s.bucket, s.prefix+key, minio.GetObjectOptions{})
	if err != nil {
		return nil, s.wrap("get", key, err)
	}
	if _, err := o.Stat(); err != nil { // GetObject asks nothing yet
		return nil, errors.Join(s.wrap("get", key, err), o.Close())
	}
	return o, nil
}

// List asks for all keys.
func (s *BucketStore) List(ctx context.Context, prefix string) ([]string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var keys []string
	for o := range s.client.ListObjects(ctx, s.bucket, minio.ListObjectsOptions{Prefix: s.prefix + prefix, Recursive: true}) {
		if o.Err != nil {
			return nil, s.wrap("list", prefix, o.Err)
		}
		keys = append(keys, strings.TrimPrefix(o.Key, s.prefix))
	}
	return keys, nil
}

// Remove removes an object.
func (s *BucketStore) Remove(ctx context.Context, key string) error {
	return s.wrap("remove", key, s.client.RemoveObject(ctx, s.bucket, s.prefix+key, minio.RemoveObjectOptions{}))
}

func (s *BucketStore) wrap(what, key string, err error) error {
	if err == nil {
		return nil
	}
	var response minio.ErrorResponse
	if errors.As(err, &response) && response.Code == "NoSuchKey" {
		return fmt.Errorf("%s s3://%s/%s%s: %w", what, s.bucket, s.prefix, key, fs.ErrNotExist)
	}
	return fmt.Errorf("%s s3://%s/%s%s: %w", what, s.bucket, s.prefix, key, err)
}
