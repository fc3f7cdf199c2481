package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"tidemark/api"
	"tidemark/snapshot"
	"tidemark/storage"
)

func showSnapshot(f *snapshot.Folder) snapshotAnswer {
	m := f.Manifest()
	return snapshotAnswer{Name: m.Name, CreatedAt: m.CreatedAt.UnixMilli(), Bytes: m.Bytes(), Files: len(m.Files)}
}

// snapshotTimeout bounds the making of a snapshot; where links are impossible files are copied.
const snapshotTimeout = 2 * time.Hour

// storageRoutes are what is stored, snapshots with the embedded engine, housekeeping with PostgreSQL.
func (s *Server) storageRoutes() []api.Route {
	routes := append(s.retentionRoutes(), s.storageRoute())
	if e, ok := s.engine.(housekept); ok {
		routes = append(routes, housekeepingRoutes(e)...)
		const message = "this server keeps its values in PostgreSQL; snapshots, backups, trials and re-compression are for the embedded engine"
		for _, what := range []string{"snapshots", "recompress"} {
			routes = append(routes, otherStore(http.MethodGet, "/api/storage/"+what, api.View, message), otherStore(http.MethodPost, "/api/storage/"+what, api.Administer, message))
		}
		for what, permission := range map[string]api.Permission{"folder": api.Administer, "classes": api.View, "trial": api.View, "hosts": api.View} {
			routes = append(routes, otherStore(http.MethodGet, "/api/storage/"+what, permission, message))
		}
		return routes
	}
	if s.snapshots == nil {
		return routes
	}
	routes = append(routes, otherStore(http.MethodGet, "/api/storage/housekeeping", api.View, "this server keeps its values in the embedded engine; housekeeping is for PostgreSQL"))
	routes = append(routes, s.snapshots.routes()...)
	routes = append(routes, s.hostSharesRoute(s.snapshots.engine))
	routes = append(append(routes, s.snapshots.folderRoute()), s.snapshots.factRoutes()...)
	return append(routes, s.recompressor.routes()...)
}

// otherStore answers 404 for what only the other kind of store has, saying so instead of that the path is unknown.
func otherStore(method, path string, permission api.Permission, message string) api.Route {
	refuse := api.JSON(func(*http.Request) (any, error) { return nil, api.NotFound(message) })
	return api.Route{Method: method, Pattern: path, Permission: permission, Handler: refuse, Unaudited: true, Doc: &api.Doc{Summary: "Not with this kind of store: " + message + "."}}
}

// routes are those of snapshots.
func (s *snapshots) routes() []api.Route {
	name := api.Param{Name: "name", Type: "string", About: "Name of the snapshot.", Required: true}
	return []api.Route{
		{
			Method: http.MethodGet, Pattern: "/api/storage/snapshots", Permission: api.View, Handler: api.JSON(s.list),
			Doc: &api.Doc{Summary: "Kept snapshots, the oldest first.", Answer: snapshotList{}},
		},
		{
			Method: http.MethodPost, Pattern: "/api/storage/snapshots", Permission: api.Administer, Handler: api.JSON(s.create), Timeout: snapshotTimeout,
			Doc: &api.Doc{
				Summary: "Makes a snapshot in the data folder. The body may name it: {\"name\":\"before-upgrade\"}.", Answer: snapshotAnswer{},
				Body: snapshotRequest{},
			},
		},
		{
			Method: http.MethodDelete, Pattern: "/api/storage/snapshots/{name}", Permission: api.Administer, Handler: api.JSON(s.delete),
			Doc: &api.Doc{Summary: "Removes a kept snapshot.", Params: []api.Param{name}, Answer: snapshotList{}},
		},
		{
			Method: http.MethodGet, Pattern: "/api/storage/snapshots/{name}", Permission: api.Administer, Handler: api.JSON(s.manifest),
			Doc: &api.Doc{Summary: "The files of a snapshot, with sizes and checksums.", Params: []api.Param{name}, Answer: snapshot.Manifest{}},
		},
		{
			Method: http.MethodGet, Pattern: "/api/storage/snapshots/{name}/file", Permission: api.Administer, Streaming: true, Handler: http.HandlerFunc(s.sendFile),
			Doc: &api.Doc{
				Summary: "The bytes of one file of a snapshot.", AnswerType: "application/octet-stream",
				Params: []api.Param{name, {Name: "path", Type: "string", About: "The file's path in the snapshot.", Required: true}},
			},
		},
	}
}

func (s *snapshots) list(*http.Request) (any, error) {
	out := snapshotList{Snapshots: []snapshotAnswer{}, HeldBytes: s.engine.PinnedBytes()}
	for _, f := range s.shelf.List() {
		out.Snapshots = append(out.Snapshots, showSnapshot(f))
	}
	return out, nil
}

// snapshotRequest names a snapshot that is to be made; empty for a name with the time.
type snapshotRequest struct {
	Name string `json:"name,omitempty"`
}

func (s *snapshots) create(r *http.Request) (any, error) {
	var in snapshotRequest
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil && !errors.Is(err, io.EOF) {
		return nil, api.BodyError(err)
	}
	if in.Name == "" {
		in.Name = snapshot.AutomaticName(time.Now())
	}
	if err := snapshot.CheckName(in.Name); err != nil {
		return nil, api.BadRequest(err.Error())
	}
	if _, taken := s.shelf.Get(in.Name); taken {
		return nil, &api.Error{Status: http.StatusConflict, Code: "exists", Message: "there is a snapshot " + in.Name + " already"}
	}
	made, err := s.make(r.Context(), in.Name)
	if err != nil {
		return nil, s.noRoom(err)
	}
	out := showSnapshot(made.Folder)
	out.TookMs, out.Copied = float64(made.Took.Microseconds())/1000, made.Copied
	return out, nil
}

// noRoom makes an error of a full disk one that says what to do. Every file of a snapshot is new, if only as a link.
func (s *snapshots) noRoom(err error) error {
	if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) && !errors.Is(err, storage.ErrFull) {
		return err
	}
	free := "no room"
	if room, measureErr := MeasureHeadroom(s.data); measureErr == nil {
		free = fmt.Sprintf("%d MiB", room.FreeBytes>>20)
	}
	return &api.Error{Status: http.StatusInsufficientStorage, Code: "disk_full", Message: fmt.Sprintf(
		"no snapshot was made, and nothing is left of it: the disk of %s is full (%s free; the configuration and the catalog are copied, the rest is linked). "+
			"Delete an older snapshot, give storage.disk_space a smaller value, or free room on that disk, and try again: %s", s.data, free, api.Shown(err))}
}

func (s *snapshots) named(r *http.Request) (*snapshot.Folder, error) {
	f, ok := s.shelf.Get(r.PathValue("name"))
	if !ok {
		return nil, api.NotFound("no snapshot has this name")
	}
	return f, nil
}

func (s *snapshots) manifest(r *http.Request) (any, error) {
	f, err := s.named(r)
	if err != nil {
		return nil, err
	}
	return f.WithTails()
}

func (s *snapshots) delete(r *http.Request) (any, error) {
	err := s.remove(r.PathValue("name"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, api.NotFound("no snapshot has this name")
	}
	if err != nil {
		return nil, err
	}
	return s.list(r)
}

// sendFile streams a file of a snapshot.
func (s *snapshots) sendFile(w http.ResponseWriter, r *http.Request) {
	f, err := s.named(r)
	if err != nil {
		api.WriteError(w, err)
		return
	}
	file := f.Find(r.URL.Query().Get("path"))
	if file == nil {
		api.WriteError(w, api.NotFound("the snapshot has no such file"))
		return
	}
	in, err := f.Open(r.Context(), file)
	if err != nil {
		api.WriteError(w, err)
		return
	}
	defer in.Close()
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.FormatInt(file.Bytes, 10))
	if _, err := io.Copy(w, in); err != nil {
		s.logger.Info("a download of a snapshot was cut", "snapshot", f.Manifest().Name, "file", file.Path, "error", err)
	}
}
