package rest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"tidemark/api"
	"tidemark/model"
	"tidemark/query"
)

const (
	// maxLiveItems bounds what one live view listens to: more than the declared items of a large host.
	maxLiveItems = 25_000
	// maxNamedItems bounds the ids in the address.
	maxNamedItems = 2000
	// liveInterval is the least time between two messages.
	liveInterval = 100 * time.Millisecond
	// overviewInterval is the time between two overviews.
	overviewInterval = time.Second
	// keepAlive is the time between two comment lines, which show a proxy and the page that the stream lives.
	keepAlive = 15 * time.Second
	// refreshItems is how often a view of a host looks for new items.
	refreshItems = 5 * time.Second
	// liveWriteTimeout ends a stream whose reader takes nothing.
	liveWriteTimeout = 20 * time.Second
	// maxLiveTextBytes cuts long texts; /api/values has the whole.
	maxLiveTextBytes = 1 << 10
)

// stream is one caller of /api/live.
type stream struct {
	// api is the view of the caller, of the whole interface; it is made anew as hosts come, go and change their groups.
	whole, api *API
	w          http.ResponseWriter
	controller *http.ResponseController
	sub        *query.Subscription
	named      []model.ItemID
	host       model.HostID
	overview   bool
}

func (a *API) serveLive(w http.ResponseWriter, r *http.Request) {
	whole := a
	a = whole.view(r)
	p := readParams(r)
	items, host, overview := p.items("items", maxNamedItems), p.host(), p.flag("overview")
	if p.err != nil {
		api.WriteError(w, p.err)
		return
	}
	s := &stream{whole: whole, api: a, w: w, controller: http.NewResponseController(w), named: items, host: host, overview: overview}
	sub, err := a.options.Hub.Subscribe(s.items())
	if err != nil {
		api.WriteError(w, &api.Error{Status: http.StatusServiceUnavailable, Code: "busy", Message: err.Error()})
		return
	}
	defer sub.Close()
	s.sub = sub
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	s.run(r)
}

// run sends until the caller goes away. Between two messages of values at least liveInterval passes.
func (s *stream) run(r *http.Request) {
	alive := time.NewTicker(keepAlive)
	defer alive.Stop()
	refresh := time.NewTicker(refreshItems)
	defer refresh.Stop()
	second := time.NewTicker(overviewInterval)
	defer second.Stop()
	pause := time.NewTimer(0)
	defer pause.Stop()
	<-pause.C
	ready := s.sub.Ready()
	err := s.send(": live\n\n")
	if err == nil && s.overview {
		err = s.sendOverview(r)
	}
	for err == nil {
		select {
		case <-r.Context().Done():
			return
		case <-ready:
			ready = nil
			err = s.sendUpdates()
			pause.Reset(liveInterval)
		case <-pause.C:
			ready = s.sub.Ready()
		case <-second.C:
			if s.overview {
				err = s.sendOverview(r)
			}
		case <-refresh.C:
			if s.api = s.whole.view(r); s.host != 0 || s.api.visible != nil {
				s.sub.SetItems(s.items())
			}
		case <-alive.C:
			err = s.send(": alive\n\n")
		}
	}
}

// items returns what is listened to: of what was asked for, what the caller may see.
func (s *stream) items() []model.ItemID {
	items := s.named
	if s.api.visible != nil {
		items = slices.DeleteFunc(slices.Clone(items), func(id model.ItemID) bool {
			_, ok := s.api.options.Catalog.Item(id)
			return !ok
		})
	}
	if s.host != 0 {
		items = append(slices.Clip(items), s.api.hostItems(s.host)...)
	}
	return items
}

// send writes and flushes. An error means that the caller is gone or takes nothing.
func (s *stream) send(text string) error {
	// Writers in tests may have no deadlines; then the context ends the stream.
	_ = s.controller.SetWriteDeadline(time.Now().Add(liveWriteTimeout))
	if _, err := s.w.Write([]byte(text)); err != nil {
		return err
	}
	return s.controller.Flush()
}

func (s *stream) sendEvent(name string, data []byte) error {
	return s.send(fmt.Sprintf("event: %s\ndata: %s\n\n", name, data))
}

func (s *stream) sendUpdates() error {
	updates, problems := s.sub.Take()
	if len(updates) > 0 {
		message := struct {
			Values [][3]any `json:"values"`
		}{Values: make([][3]any, 0, len(updates))}
		for i := range updates {
			u := &updates[i]
			message.Values = append(message.Values, [3]any{formatID(u.Item), floorMillis(u.Value.At), liveText(&u.Value)})
		}
		data, err := json.Marshal(message)
		if err != nil {
			return err
		}
		if err := s.sendEvent("values", data); err != nil {
			return err
		}
	}
	if problems {
		return s.sendEvent("problems", []byte("{}"))
	}
	return nil
}

func liveText(v *query.Value) string {
	text := valueText(v)
	if len(text) > maxLiveTextBytes {
		text = text[:maxLiveTextBytes]
	}
	return text
}

func (s *stream) sendOverview(r *http.Request) error {
	data, err := s.api.encodedOverview(r.Context())
	if err != nil {
		return s.sendEvent("error", errorData(r, err))
	}
	return s.sendEvent("overview", data)
}

// errorData is the body of an error answer.
func errorData(r *http.Request, err error) []byte {
	var body api.ErrorAnswer
	e, id := api.AsError(err), api.Explain(r.Context(), err)
	body.Error.Code, body.Error.Message, body.Error.RequestID = e.Code, api.Named(e.Message, id), id
	data, err := json.Marshal(body)
	if err != nil {
		return []byte(`{"error":{"code":"internal","message":""}}`)
	}
	return data
}
