// Package remotewrite takes samples that Prometheus and others send by remote write, 1.0 and 2.0.
package remotewrite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"time"
	"unsafe"

	"github.com/VictoriaMetrics/metrics"
	"github.com/klauspost/compress/snappy"

	"tidemark/collect"
	"tidemark/collect/series"
	"tidemark/model"
	"tidemark/wire/nativehistogram"
	wire "tidemark/wire/remotewrite"
)

// Limits of a request.
const (
	// MaxBodyBytes bounds a request as it is sent, MaxMessageBytes unpacked.
	MaxBodyBytes    = 16 << 20
	MaxMessageBytes = 32 << 20
	// maxRatio is more than snappy can pack: three bytes copy at most 64.
	maxRatio = 64
	// maxAtOnce bounds the requests whose messages are in memory.
	maxAtOnce = 4
)

const (
	v1Name = "prometheus.WriteRequest"
	v2Name = "io.prometheus.write.v2.Request"
)

// The headers of an answer to 2.0.
const (
	samplesWritten    = "X-Prometheus-Remote-Write-Samples-Written"
	histogramsWritten = "X-Prometheus-Remote-Write-Histograms-Written"
	exemplarsWritten  = "X-Prometheus-Remote-Write-Exemplars-Written"
)

// Options of a Handler.
type Options struct {
	Table *series.Table
	// Logger and Metrics may be nil.
	Logger  *slog.Logger
	Metrics *metrics.Set
}

// Handler is the receiver. It answers when the samples are durable.
type Handler struct {
	table  *series.Table
	logger *slog.Logger
	slots  chan struct{}

	requests, failed, histograms, badHistograms, exemplars *metrics.Counter
}

// New returns a receiver.
func New(o Options) *Handler {
	set := o.Metrics
	if set == nil {
		set = metrics.NewSet()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Handler{
		table: o.Table, logger: o.Logger, slots: make(chan struct{}, maxAtOnce),
		requests:   set.GetOrCreateCounter("tidemark_remotewrite_requests_total"),
		failed:     set.GetOrCreateCounter("tidemark_remotewrite_failed_requests_total"),
		histograms: set.GetOrCreateCounter("tidemark_remotewrite_native_histograms_total"), badHistograms: set.GetOrCreateCounter("tidemark_remotewrite_refused_histograms_total"),
		exemplars: set.GetOrCreateCounter("tidemark_remotewrite_dropped_exemplars_total"),
	}
}

// refusal is an answer with a status.
type refusal struct {
	status int
	text   string
}

func (r *refusal) Error() string { return r.text }

// ServeHTTP takes one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.requests.Inc()
	in := &request{h: h}
	err := h.take(r, in)
	if in.version == wire.V2 {
		w.Header().Set(samplesWritten, strconv.Itoa(in.stored))
		w.Header().Set(histogramsWritten, strconv.Itoa(in.written()))
		w.Header().Set(exemplarsWritten, "0")
	}
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	h.failed.Inc()
	status := http.StatusServiceUnavailable // the sender tries again
	var refused *refusal
	switch {
	case errors.As(err, &refused):
		status = refused.status
	case errors.Is(err, wire.ErrMessage):
		status = http.StatusBadRequest
	case errors.Is(err, collect.ErrStopping), r.Context().Err() != nil: // nothing is wrong here: the server stops, or the sender went away
	default:
		h.logger.Error("a remote write could not be stored; its sender tries again", "peer", r.RemoteAddr, "error", err)
	}
	http.Error(w, err.Error(), status)
}

// versionOf reads the content type: without proto parameter it is 1.0.
func versionOf(contentType string) (wire.Version, error) {
	wrong := &refusal{http.StatusUnsupportedMediaType, fmt.Sprintf("Content-Type %.100q; expected application/x-protobuf, with proto=%s or proto=%s", contentType, v1Name, v2Name)}
	if contentType == "" {
		return wire.V1, nil
	}
	media, params, err := mime.ParseMediaType(contentType)
	if err != nil || media != "application/x-protobuf" {
		return 0, wrong
	}
	switch params["proto"] {
	case "", v1Name:
		return wire.V1, nil
	case v2Name:
		return wire.V2, nil
	}
	return 0, wrong
}

func (h *Handler) take(r *http.Request, in *request) error {
	version, err := versionOf(r.Header.Get("Content-Type"))
	if err != nil {
		return err
	}
	if e := r.Header.Get("Content-Encoding"); e != "" && e != "snappy" {
		return &refusal{http.StatusUnsupportedMediaType, fmt.Sprintf("Content-Encoding %.40q; expected snappy", e)}
	}
	in.version = version
	select {
	case h.slots <- struct{}{}:
		defer func() { <-h.slots }()
	case <-r.Context().Done():
		return &refusal{http.StatusServiceUnavailable, fmt.Sprintf("the server takes %d remote writes at this moment, its limit; try again", maxAtOnce)}
	}
	message, err := unpack(r.Body)
	if err != nil {
		return err
	}
	in.ctx, in.write = r.Context(), h.table.Write()
	defer in.write.Drop()
	if err := wire.Decode(message, version, in); err != nil {
		return err
	}
	if err := in.write.Store(r.Context()); err != nil {
		return err
	}
	in.durable = true
	in.stored = max(0, in.write.Stored-in.derived)
	return in.partial()
}

// unpack reads a body. What it says of its size is believed only as far as its own length allows.
func unpack(body io.Reader) ([]byte, error) {
	packed, err := io.ReadAll(io.LimitReader(body, MaxBodyBytes+1))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge) || len(packed) > MaxBodyBytes:
		return nil, &refusal{http.StatusRequestEntityTooLarge, fmt.Sprintf("the body has more than %d bytes; set a smaller max_samples_per_send", MaxBodyBytes)}
	case err != nil:
		return nil, &refusal{http.StatusBadRequest, fmt.Sprintf("the body could not be read: %v", err)}
	}
	size, err := snappy.DecodedLen(packed)
	switch {
	case err != nil:
		return nil, &refusal{http.StatusBadRequest, "the body is not in snappy's block format"}
	case size > MaxMessageBytes:
		return nil, &refusal{http.StatusRequestEntityTooLarge, fmt.Sprintf("the message says that it has %d bytes, expected at most %d; set a smaller max_samples_per_send", size, MaxMessageBytes)}
	case size > maxRatio*len(packed):
		return nil, &refusal{http.StatusBadRequest, fmt.Sprintf("the body of %d bytes says that it unpacks to %d, which snappy cannot do", len(packed), size)}
	}
	message, err := snappy.Decode(nil, packed)
	if err != nil {
		return nil, &refusal{http.StatusBadRequest, fmt.Sprintf("the body does not unpack: %v", err)}
	}
	return message, nil
}

// request takes the series of one message.
type request struct {
	h       *Handler
	ctx     context.Context //nolint:containedctx // lives as long as its request
	version wire.Version
	write   *series.Write
	labels  model.Labels

	// info is what else is known of the series under way, named whether in.write was told of it.
	info  func() series.Info
	named bool

	// stored are samples; derived those that histograms were made into, histograms what was taken of them, refused what does not fit together.
	stored, derived, histograms, refused, badTimes int
	// durable is set once all is.
	durable bool
	// wrong says what was wrong with the first that was refused.
	wrong error
}

// text is a string over bytes of the message, which live as long as the request.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// Series implements wire.Receiver.
func (in *request) Series(s *wire.Series) error {
	in.labels = in.labels[:0]
	var job, instance string
	for _, l := range s.Labels {
		name, value := text(l.Name), text(l.Value)
		in.labels = append(in.labels, model.Label{Name: name, Value: value})
		switch name {
		case "job":
			job = value
		case "instance":
			instance = value
		}
	}
	// Senders must sort; a few did not in the past, and their order does no harm.
	if less := func(a, b model.Label) int { return cmp.Compare(a.Name, b.Name) }; !slices.IsSortedFunc(in.labels, less) {
		slices.SortFunc(in.labels, less)
	}
	in.h.exemplars.Add(s.Exemplars)
	help, unit := s.Help, s.Unit
	in.info = func() series.Info {
		return series.Info{Host: series.HostOf(job, instance), Help: string(help), Unit: string(unit)}
	}
	// A series of histograms only has no samples under its own name.
	if in.named = s.Histograms == 0; in.named {
		in.write.Series(in.labels, in.info)
	}
	return nil
}

// Histogram implements wire.Receiver: it is stored as a classic one.
func (in *request) Histogram(at int64, h *nativehistogram.Histogram) error {
	if at <= 0 || at > maxMillis {
		in.badTimes++
		return nil
	}
	in.named = false
	made, wrong, err := in.write.Histogram(in.ctx, in.labels, in.info, at*int64(time.Millisecond), h)
	in.derived += made
	if wrong == nil {
		in.histograms++
		in.h.histograms.Inc()
		return err
	}
	in.refused++
	in.h.badHistograms.Inc()
	if in.wrong == nil {
		in.wrong = fmt.Errorf("%.100q: %w", in.labels.Get(series.NameLabel), wrong)
	}
	return err
}

// maxMillis is the last time that can be stored.
const maxMillis = math.MaxInt64 / int64(time.Millisecond)

// Sample implements wire.Receiver.
func (in *request) Sample(at int64, value float64) error {
	if at <= 0 || at > maxMillis {
		in.badTimes++
		return nil
	}
	if !in.named {
		in.named = true
		in.write.Series(in.labels, in.info)
	}
	return in.write.Sample(in.ctx, at*int64(time.Millisecond), value)
}

// written are the histograms that are stored, once they are.
func (in *request) written() int {
	if in.durable {
		return in.histograms
	}
	return 0
}

// partial says what was not stored. The rest is, and the sender must not try again.
func (in *request) partial() error {
	if in.write.RefusedCount()+in.refused+in.badTimes == 0 {
		return nil
	}
	message := fmt.Sprintf("%d samples are stored", in.stored)
	if why := in.write.Why(); why != "" {
		message += "; " + why
	}
	if in.badTimes > 0 {
		message += fmt.Sprintf("; %d samples refused: their time is not from 1970 to 2262 in milliseconds", in.badTimes)
	}
	if in.refused > 0 {
		message += fmt.Sprintf("; %d native histograms refused: histogram %v", in.refused, in.wrong)
	}
	return &refusal{http.StatusBadRequest, message}
}
