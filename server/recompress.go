package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"tidemark/api"
	"tidemark/internal/vfs"
	"tidemark/storage/dbengine"
	"tidemark/wire/sketch"
)

// RecompressOptions are the policy by which a server writes old file pairs anew, smaller.
type RecompressOptions struct {
	// Codec is none, lz4 or zstd:LEVEL; empty leaves pairs as they are.
	Codec string
	// OlderThan is the age from which on.
	OlderThan time.Duration
	// BytesPerSecond bounds reading and writing together.
	BytesPerSecond int64
	// MergeBytes lets neighbours with small pages become one pair, as long as their files together take no more; zero for never, -1 for an
	// eighth of the disk space.
	MergeBytes int64
}

// recompressPause is the time between two looks for pairs that have become old.
const recompressPause = 10 * time.Minute

// recompressor runs one re-compression at a time.
type recompressor struct {
	engine *dbengine.DB
	policy RecompressOptions
	logger *slog.Logger

	mu      sync.Mutex
	state   recompressState
	stop    context.CancelFunc
	stopped bool
	jobs    sync.WaitGroup
}

// recompressState is what is known of the last run, and the one that runs.
type recompressState struct {
	Running bool `json:"running"`
	// Automatic says that the policy started it.
	Automatic bool `json:"automatic"`
	// Codec, StartedAt and EndedAt are of the last run; times in Unix milliseconds, zero for none.
	Codec     string `json:"codec"`
	StartedAt int64  `json:"started_at"`
	EndedAt   int64  `json:"ended_at"`
	// SecondsLeft is how long it will take at this rate; null when that is not known.
	SecondsLeft *float64                    `json:"seconds_left"`
	Progress    dbengine.RecompressProgress `json:"progress"`
	// Error says why the last run ended early.
	Error string `json:"error,omitempty"`
}

func newRecompressor(engine *dbengine.DB, policy RecompressOptions, set *metrics.Set, logger *slog.Logger) *recompressor {
	r := &recompressor{engine: engine, policy: policy, logger: logger}
	gauge := func(name string, f func(s *recompressState) float64) {
		set.NewGauge("tidemark_recompress_"+name, func() float64 { s := r.get(); return f(&s) })
	}
	gauge("running", func(s *recompressState) float64 {
		if s.Running {
			return 1
		}
		return 0
	})
	gauge("todo_bytes", func(s *recompressState) float64 {
		if !s.Running {
			return 0
		}
		return float64(s.Progress.Bytes - s.Progress.DoneBytes)
	})
	return r
}

func (r *recompressor) get() recompressState {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.state
	if p := &s.Progress; s.Running && p.DoneBytes > 0 {
		took := time.Since(time.UnixMilli(s.StartedAt)).Seconds()
		left := took * float64(p.Bytes-p.DoneBytes) / float64(p.DoneBytes)
		s.SecondsLeft = &left
	}
	return s
}

// errRunning says that one runs already.
var errRunning = errors.New("a re-compression is under way")

// do runs one that has begun, until it is done or ctx ends.
func (r *recompressor) do(ctx context.Context, o dbengine.Recompress) error {
	o.Progress = func(p dbengine.RecompressProgress) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.state.Progress = p
	}
	p, err := r.engine.Recompress(ctx, o)
	r.mu.Lock()
	r.state.Progress, r.state.Running, r.state.EndedAt = p, false, time.Now().UnixMilli()
	if err != nil {
		r.state.Error = api.Shown(err)
	}
	r.mu.Unlock()
	if p.WrittenPairs+p.SkippedPairs > 0 {
		r.logger.Info("file pairs written anew", "codec", o.Codec.String(), "pairs", p.WrittenPairs, "merged", p.MergedPairs, "into", p.JoinedPairs, "before_bytes", p.BeforeBytes, "after_bytes", p.AfterBytes, "skipped", p.SkippedPairs)
	}
	return err
}

func (r *recompressor) begin(o dbengine.Recompress, automatic bool, cancel context.CancelFunc) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state.Running || r.stopped {
		return errRunning
	}
	r.stop = cancel
	r.state = recompressState{Running: true, Automatic: automatic, Codec: o.Codec.String(), StartedAt: time.Now().UnixMilli()}
	return nil
}

// start begins one in the background; with all the pair that grows is closed first.
func (r *recompressor) start(o dbengine.Recompress, all bool) error {
	ctx, cancel := context.WithCancel(context.Background()) // it outlives the request, and ends with run
	if err := r.begin(o, false, cancel); err != nil {
		cancel()
		return err
	}
	r.jobs.Go(func() {
		defer cancel()
		if err := r.closed(ctx, o, all); err != nil && ctx.Err() == nil {
			r.logger.Error("re-compression", "error", err)
		}
	})
	return nil
}

// closed is do after the growing pair was closed, if that is asked for.
func (r *recompressor) closed(ctx context.Context, o dbengine.Recompress, all bool) error {
	if !all {
		return r.do(ctx, o)
	}
	err := r.engine.ClosePair(ctx)
	if err == nil {
		err = r.engine.WaitSummedUp(ctx)
	}
	if err == nil {
		return r.do(ctx, o)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state.Running, r.state.EndedAt, r.state.Error = false, time.Now().UnixMilli(), api.Shown(err)
	return err
}

// stopNow ends what runs; what is done stays.
func (r *recompressor) stopNow() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stop != nil {
		r.stop()
	}
}

// run follows the policy until ctx ends.
func (r *recompressor) run(ctx context.Context) error {
	defer func() {
		r.mu.Lock()
		r.stopped = true
		r.mu.Unlock()
		r.stopNow()
		r.jobs.Wait()
	}()
	if r.policy.Codec == "" {
		<-ctx.Done()
		return nil
	}
	codec, err := dbengine.ParseCodec(r.policy.Codec)
	if err != nil {
		return err
	}
	o := dbengine.Recompress{Codec: codec, OlderThan: r.policy.OlderThan, BytesPerSecond: r.policy.BytesPerSecond, MergeBytes: r.policy.MergeBytes, Busy: machineBusy}
	for {
		timer := time.NewTimer(recompressPause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
		running, cancel := context.WithCancel(ctx)
		err := r.begin(o, true, cancel)
		if err == nil {
			err = r.do(running, o)
		}
		cancel()
		if err != nil && !errors.Is(err, errRunning) && !errors.Is(err, context.Canceled) {
			r.logger.Error("re-compression; it is tried again", "error", err)
		}
	}
}

// The shares of the last 10 s in which something waited, in percent, above which the machine counts as busy.
const (
	busyCPU  = 60
	busyDisk = 40
)

// machineBusy asks the kernel (PSI) whether work waits for the CPU or the disk. Without PSI it says no.
func machineBusy() bool {
	return pressure("/proc/pressure/cpu") > busyCPU || pressure("/proc/pressure/io") > busyDisk
}

// pressure reads "some avg10=1.23 …".
func pressure(name string) float64 {
	text, err := os.ReadFile(name)
	if err != nil {
		return 0
	}
	_, rest, ok := strings.Cut(string(text), "some avg10=")
	if !ok {
		return 0
	}
	number, _, _ := strings.Cut(rest, " ")
	share, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0
	}
	return share
}

func (r *recompressor) routes() []api.Route {
	return []api.Route{
		{
			Method: http.MethodGet, Pattern: "/api/storage/recompress", Permission: api.View,
			Handler: api.JSON(func(*http.Request) (any, error) { return r.get(), nil }),
			Doc:     &api.Doc{Summary: "The re-compression that is under way, or the last one.", Answer: recompressState{}},
		},
		{
			Method: http.MethodPost, Pattern: "/api/storage/recompress", Permission: api.Administer, Handler: api.JSON(r.post),
			Doc: &api.Doc{Summary: "Starts writing old file pairs anew, smaller.", Body: recompressRequest{}, Answer: recompressState{}},
		},
		{
			Method: http.MethodDelete, Pattern: "/api/storage/recompress", Permission: api.Administer,
			Handler: api.JSON(func(*http.Request) (any, error) { r.stopNow(); return r.get(), nil }),
			Doc:     &api.Doc{Summary: "Stops the re-compression. Pairs that are done stay done.", Answer: recompressState{}},
		},
	}
}

func (r *recompressor) post(request *http.Request) (any, error) {
	var in recompressRequest
	d := json.NewDecoder(request.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil && !errors.Is(err, io.EOF) {
		return nil, api.BodyError(err)
	}
	codec, err := dbengine.ParseCodec(in.Codec)
	if err != nil {
		return nil, api.BadRequest(err.Error())
	}
	if in.ExtentBytes != 0 && (in.ExtentBytes < dbengine.MinExtentBytes || in.ExtentBytes > dbengine.MaxExtentBytes) {
		return nil, api.BadRequest(fmt.Sprintf("extent_bytes is %d, expected %d to %d", in.ExtentBytes, dbengine.MinExtentBytes, dbengine.MaxExtentBytes))
	}
	if in.OlderThanSeconds < 0 || in.OlderThanSeconds > 1e9 || in.BytesPerSecond < 0 {
		return nil, api.BadRequest("older_than_seconds and bytes_per_second: expected numbers not below zero")
	}
	if in.MergeBytes < dbengine.MergeAuto {
		return nil, api.BadRequest(fmt.Sprintf("merge_bytes is %d, expected a number of bytes, 0 for no merging, or -1 for an eighth of the disk space", in.MergeBytes))
	}
	o := dbengine.Recompress{
		Codec: codec, ExtentBytes: in.ExtentBytes, OlderThan: time.Duration(in.OlderThanSeconds * float64(time.Second)),
		BytesPerSecond: in.BytesPerSecond, MergeBytes: in.MergeBytes, Again: in.Again, Busy: machineBusy,
	}
	if in.Now {
		o.Busy = nil
	}
	if err := r.start(o, in.Close); err != nil {
		return nil, &api.Error{Status: http.StatusConflict, Code: "running", Message: err.Error()}
	}
	return r.get(), nil
}

// RecompressOffline writes the old pairs of a data folder, or its engine folder, of a stopped server anew.
func RecompressOffline(ctx context.Context, dir string, o dbengine.Recompress) (p dbengine.RecompressProgress, err error) {
	fsys := vfs.OS{}
	data := filepath.Dir(dir)
	if filepath.Base(dir) == "engine" {
		if _, statErr := fsys.Stat(filepath.Join(data, lockFile)); statErr == nil {
			lock, err := lockFolder(fsys, data)
			if err != nil {
				return p, err
			}
			defer func() { err = errors.Join(err, lock.Close()) }()
		}
	}
	db, err := dbengine.Open(ctx, fsys, dir, dbengine.Options{DiskSpaceBytes: 1 << 50, Merge: sketch.AppendMerged})
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if o.OlderThan == 0 { // all of it
		if err := db.ClosePair(ctx); err != nil {
			return p, err
		}
	}
	if err := db.WaitSummedUp(ctx); err != nil {
		return p, err
	}
	return db.Recompress(ctx, o)
}
