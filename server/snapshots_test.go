package server

import (
	"context"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tidemark/snapshot"
)

// TestServer_snapshot takes a snapshot of a running server, restores it, and finds values and problem there, and none that came later.
func TestServer_snapshot(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	r := run(t, dir)
	r.importExport()
	now := time.Now().Unix()
	r.sender("95", now-2)
	r.problem(true)
	answer, err := http.Post(r.http+"/api/storage/snapshots", "application/json", strings.NewReader(`{"name":"one"}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := answer.Body.Close(); err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s, %v", answer.Status, err)
	}
	again, err := http.Post(r.http+"/api/storage/snapshots", "application/json", strings.NewReader(`{"name":"one"}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Body.Close(); err != nil || again.StatusCode != http.StatusConflict {
		t.Errorf("the same name again: %s, %v", again.Status, err)
	}
	r.sender("11", now-1)
	var list snapshotList
	r.get("/api/storage/snapshots", &list)
	if len(list.Snapshots) != 1 || list.Snapshots[0].Name != "one" || list.Snapshots[0].Bytes == 0 {
		t.Fatalf("the server keeps %+v", list)
	}
	var room storageAnswer
	r.get("/api/storage", &room)
	if room.Disk.TotalBytes == 0 || room.QuotaBytes == 0 || room.Snapshots != 1 || room.Recompress.Running {
		t.Errorf("the storage is %+v", room)
	}
	r.stop()

	kept, err := snapshot.OpenFolder(filepath.Join(dir, SnapshotsFolder, "one"))
	if err != nil {
		t.Fatal(err)
	}
	back := filepath.Join(t.TempDir(), "back")
	if err := snapshot.Restore(context.Background(), kept, back, nil); err != nil {
		t.Fatal(err)
	}
	r = run(t, back)
	r.problem(true)
	if got := r.query(`temperature{host="web-1"}`); got != "95" {
		t.Errorf("the restored server answers %s", got)
	}
	request, err := http.NewRequest(http.MethodDelete, r.http+"/api/storage/snapshots/none", nil)
	if err != nil {
		t.Fatal(err)
	}
	gone, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	if err := gone.Body.Close(); err != nil || gone.StatusCode != http.StatusNotFound {
		t.Errorf("removing a snapshot that is not there: %s, %v", gone.Status, err)
	}
}
