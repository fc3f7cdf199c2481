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

	"tidemark/collect/series"
	"tidemark/model"
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

	requests, failed, histograms, exemplars *metrics.Counter
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
		histograms: set.GetOrCreateCounter("tidemark_remotewrite_refused_histograms_total"),
		exemplars:  set.GetOrCreateCounter("tidemark_remotewrite_dropped_exemplars_total"),
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
		w.Header().Set(histogramsWritten, "0")
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
	in.stored = in.write.Stored
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

	stored, histograms, badTimes int
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
	in.histograms += s.Histograms
	in.h.histograms.Add(s.Histograms)
	in.h.exemplars.Add(s.Exemplars)
	in.write.Series(in.labels, func() series.Info {
		return series.Info{Host: series.HostOf(job, instance), Help: string(s.Help), Unit: string(s.Unit)}
	})
	return nil
}

// Sample implements wire.Receiver.
func (in *request) Sample(at int64, value float64) error {
	const limit = math.MaxInt64 / int64(time.Millisecond)
	if at <= 0 || at > limit {
		in.badTimes++
		return nil
	}
	return in.write.Sample(in.ctx, at*int64(time.Millisecond), value)
}

// partial says what was not stored. The rest is, and the sender must not try again.
func (in *request) partial() error {
	if in.write.RefusedCount()+in.histograms+in.badTimes == 0 {
		return nil
	}
	message := fmt.Sprintf("%d samples are stored", in.stored)
	if why := in.write.Why(); why != "" {
		message += "; " + why
	}
	if in.badTimes > 0 {
		message += fmt.Sprintf("; %d samples refused: their time is not from 1970 to 2262 in milliseconds", in.badTimes)
	}
	if in.histograms > 0 {
		message += fmt.Sprintf("; %d native histograms refused: only classic histograms are kept (set send_native_histograms: false)", in.histograms)
	}
	return &refusal{http.StatusBadRequest, message}
}
