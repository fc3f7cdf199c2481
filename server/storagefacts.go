package server

import (
	"net/http"

	"tidemark/api"
	"tidemark/model"
	"tidemark/storage/dbengine"
	"tidemark/storage/dbengine/trial"
)

// storageClasses is the answer to GET /api/storage/classes.
type storageClasses struct {
	// Classes are those that there are, the one that takes most first.
	Classes []storageClass `json:"classes"`
}

// lastTrial is the answer to GET /api/storage/trial.
type lastTrial struct {
	// Trial is null when none was made in the data folder.
	Trial *trial.Last `json:"trial"`
	// Problem says why its report cannot be read.
	Problem string `json:"problem,omitempty"`
}

// factRoutes, which say nothing of single hosts, are what is known of the embedded engine's files besides their number and size.
func (s *snapshots) factRoutes() []api.Route {
	return []api.Route{
		{
			Method: http.MethodGet, Pattern: "/api/storage/classes", Permission: api.View, PerHost: true, Handler: api.JSON(s.classes),
			Doc: &api.Doc{Summary: "What values of each kind take in the closed file pairs, reckoned from a sample that is spread evenly over them.", Answer: storageClasses{}},
		},
		{
			Method: http.MethodGet, Pattern: "/api/storage/trial", Permission: api.View, PerHost: true,
			Handler: api.JSON(s.lastTrial),
			Doc:     &api.Doc{Summary: "The report of the last trial of codecs (tidemark store trial) in the data folder.", Answer: lastTrial{}},
		},
	}
}

func (s *snapshots) lastTrial(*http.Request) (any, error) {
	last, err := trial.ReadLast(s.data)
	if err != nil {
		s.logger.Warn("the report of the last trial cannot be read", "error", err)
		return lastTrial{Problem: "The report of the last trial cannot be read: remove " + trial.FileName + " from the data folder, or try codecs again."}, nil
	}
	return lastTrial{Trial: last}, nil
}

func (s *snapshots) classes(r *http.Request) (any, error) {
	list, err := s.engine.Classes(r.Context())
	if err != nil {
		return nil, err
	}
	return storageClasses{Classes: joinClasses(list)}, nil
}

// joinClasses makes one class of all steady numbers, and one of all texts, in the order of what they take.
func joinClasses(list []dbengine.ClassUse) []storageClass {
	out := []storageClass{}
	for _, u := range list {
		name := className(u.ItemClass)
		i := 0
		for i < len(out) && out[i].Class != name {
			i++
		}
		if i == len(out) {
			out = append(out, storageClass{Class: name})
		}
		out[i].Values, out[i].Bytes = out[i].Values+u.Values, out[i].Bytes+u.Bytes
		for ; i > 0 && out[i].Bytes > out[i-1].Bytes; i-- {
			out[i], out[i-1] = out[i-1], out[i]
		}
	}
	return out
}

func className(c dbengine.ItemClass) string {
	switch {
	case c.Steady:
		return "steady"
	case c.Type == model.Float:
		return "float"
	case c.Type == model.Uint:
		return "uint"
	case c.Type == model.Binary:
		return "binary"
	}
	return "text"
}
