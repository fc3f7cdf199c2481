// Package otlp takes metrics of OpenTelemetry over HTTP, in protobuf and JSON.
package otlp

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"

	"github.com/VictoriaMetrics/metrics"
	"google.golang.org/protobuf/encoding/protowire"

	"tidemark/collect"
	"tidemark/collect/series"
	wire "tidemark/wire/otlp"
)

// Limits of a request.
const (
	// MaxBodyBytes bounds a request as it is sent, MaxMessageBytes unpacked.
	MaxBodyBytes    = 16 << 20
	MaxMessageBytes = 32 << 20
	// maxAtOnce bounds the requests whose messages are in memory.
	maxAtOnce = 2
)

const (
	protobufType = "application/x-protobuf"
	jsonType     = "application/json"
)

// Options of a Handler.
type Options struct {
	Table *series.Table
	// Logger and Metrics may be nil.
	Logger  *slog.Logger
	Metrics *metrics.Set
}

// Handler is the receiver. It answers when the points are durable.
type Handler struct {
	table  *series.Table
	logger *slog.Logger
	slots  chan struct{}

	requests, failed, rejected *metrics.Counter
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
		requests: set.NewCounter("tidemark_otlp_requests_total"),
		failed:   set.NewCounter("tidemark_otlp_failed_requests_total"),
		rejected: set.NewCounter("tidemark_otlp_rejected_points_total"),
	}
}

// refusal is an answer with a status.
type refusal struct {
	status int
	text   string
}

func (r *refusal) Error() string { return r.text }

// partial is what was rejected of a request that was taken; senders must not try again.
type partial struct {
	rejected int
	message  string
}

// ServeHTTP takes one export.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.requests.Inc()
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || media != protobufType && media != jsonType {
		h.failed.Inc()
		http.Error(w, fmt.Sprintf("Content-Type %.60q; expected %s or %s", r.Header.Get("Content-Type"), protobufType, jsonType), http.StatusUnsupportedMediaType)
		return
	}
	rest, err := h.take(r, media == jsonType)
	if err == nil {
		h.rejected.Add(rest.rejected)
		answer(w, media, http.StatusOK, rest.encode(media == jsonType))
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
		h.logger.Error("an export of OpenTelemetry could not be stored; its sender tries again", "peer", r.RemoteAddr, "error", err)
	}
	answer(w, media, status, problem(err.Error(), media == jsonType))
}

func answer(w http.ResponseWriter, media string, status int, body []byte) {
	w.Header().Set("Content-Type", media)
	w.WriteHeader(status)
	_, _ = w.Write(body) // an error means that the caller went away
}

func (h *Handler) take(r *http.Request, isJSON bool) (partial, error) {
	select {
	case h.slots <- struct{}{}:
		defer func() { <-h.slots }()
	case <-r.Context().Done():
		return partial{}, &refusal{http.StatusServiceUnavailable, fmt.Sprintf("the server takes %d exports at this moment, its limit; try again", maxAtOnce)}
	}
	message, err := unpack(r)
	if err != nil {
		return partial{}, err
	}
	decode := wire.Decode
	if isJSON {
		decode = wire.DecodeJSON
	}
	request, err := decode(message)
	if err != nil {
		return partial{}, err
	}
	write := h.table.Write()
	defer write.Drop()
	t := newTranslation(r.Context(), write)
	if err := t.request(request); err != nil {
		return partial{}, err
	}
	if err := write.Store(r.Context()); err != nil {
		return partial{}, err
	}
	rest := partial{rejected: t.rejected + write.RefusedCount(), message: t.first}
	if why := write.Why(); why != "" {
		if rest.message != "" {
			rest.message += "; "
		}
		rest.message += why
	}
	return rest, nil
}

// unpack reads a body, packed with gzip or not.
func unpack(r *http.Request) ([]byte, error) {
	body := io.Reader(r.Body)
	switch e := r.Header.Get("Content-Encoding"); e {
	case "", "identity":
	case "gzip":
		unpacked, err := gzip.NewReader(r.Body)
		if err != nil {
			return nil, &refusal{http.StatusBadRequest, fmt.Sprintf("the body does not unpack: %v", err)}
		}
		body = unpacked
	default:
		return nil, &refusal{http.StatusUnsupportedMediaType, fmt.Sprintf("Content-Encoding %.40q; expected gzip or none", e)}
	}
	message, err := io.ReadAll(io.LimitReader(body, MaxMessageBytes+1))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge) || len(message) > MaxMessageBytes:
		return nil, &refusal{http.StatusRequestEntityTooLarge, fmt.Sprintf("the body has more than %d bytes, or more than %d unpacked; send smaller batches", MaxBodyBytes, MaxMessageBytes)}
	case err != nil:
		return nil, &refusal{http.StatusBadRequest, fmt.Sprintf("the body could not be read: %v", err)}
	}
	return message, nil
}

// encode is an ExportMetricsServiceResponse: with a partial success if points were rejected.
func (p partial) encode(isJSON bool) []byte {
	if isJSON {
		if p.rejected == 0 {
			return []byte("{}")
		}
		b, err := json.Marshal(map[string]any{"partialSuccess": map[string]any{"rejectedDataPoints": fmt.Sprint(p.rejected), "errorMessage": p.message}})
		if err != nil {
			panic("otlp: an answer cannot be encoded: " + err.Error()) // texts only
		}
		return b
	}
	if p.rejected == 0 {
		return nil
	}
	inner := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(p.rejected))
	inner = protowire.AppendString(protowire.AppendTag(inner, 2, protowire.BytesType), p.message)
	return protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), inner)
}

// problem is a google.rpc.Status with a message.
func problem(message string, isJSON bool) []byte {
	if isJSON {
		b, err := json.Marshal(map[string]any{"message": message})
		if err != nil {
			panic("otlp: an answer cannot be encoded: " + err.Error()) // texts only
		}
		return b
	}
	return protowire.AppendString(protowire.AppendTag(nil, 2, protowire.BytesType), message)
}
