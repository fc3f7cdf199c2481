package rest

import "net/url"

// searchShapes finds shapes of MongoDB requests.
func (a *API) searchShapes(text string, limit int) []SearchResult {
	shapes := a.requests.Search(text, limit)
	found := make([]SearchResult, 0, len(shapes))
	for i := range shapes {
		s := &shapes[i]
		found = append(found, SearchResult{
			Kind: "request", ID: s.Instance + " " + s.ID, Title: s.Namespace() + " " + s.Shape, Subtitle: s.Instance,
			URL: "/requests?" + url.Values{"instance": {s.Instance}, "search": {s.ID}, "shape": {s.ID}}.Encode(),
		})
	}
	return found
}
