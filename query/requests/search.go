package requests

import (
	"cmp"
	"slices"
	"strings"
)

// Found is a shape that a search found.
type Found struct {
	// Instance is the id of its instance.
	Instance string
	Names
}

// measured is the end of the key of one item that every shape has.
const measured = ",requests]"

// Search finds shapes of all instances in whose names, shape or fingerprint a text in lower case occurs, at most limit of them.
func (r *Reader) Search(text string, limit int) []Found {
	var found []Found
	for _, id := range r.catalog.Match(equal(nameLabel, shapeMetric)) {
		e, ok := r.catalog.Item(id)
		if !ok || !strings.HasSuffix(e.Key, measured) {
			continue
		}
		l := r.catalog.OwnLabels(id)
		n := namesOf(l)
		n.ID = fingerprintOf(strings.TrimSuffix(e.Key, measured))
		if n.ID == OtherID || !n.fit(text) && !strings.Contains(strings.ToLower(n.Namespace()+" "+n.Shape), text) {
			continue
		}
		i := Instance{Host: e.Host, Address: l.Get("instance")}
		found = append(found, Found{Instance: i.ID(), Names: n})
	}
	// The shortest fits best: it has the least besides the text.
	slices.SortFunc(found, func(a, b Found) int {
		return cmp.Or(cmp.Compare(len(a.Shape), len(b.Shape)), cmp.Compare(a.Instance, b.Instance), cmp.Compare(a.ID, b.ID))
	})
	return found[:min(len(found), limit)]
}
