package rest

import (
	"slices"
	"strings"

	"tidemark/catalog"
	"tidemark/model"
)

// maxKeyBytes bounds a key that is looked for; a key itself has at most 2,048 letters.
const maxKeyBytes = 8 << 10

// itemNames finds items by the names of their hosts and by key, as dashboards do. Empty fields fit all.
type itemNames struct{ host, group, key string }

// namedItems returns the items that fit both, by rising id, and how many there are.
func (a *API) namedItems(n itemNames, f catalog.Filter) (entries []model.Entry, total int) {
	text := strings.ToLower(f.Text)
	add := func(e model.Entry) {
		if text != "" && !contains(e.Key, text) && !contains(e.Name, text) && !contains(e.Host, text) {
			return
		}
		total++
		if e.ID > f.After {
			entries = append(entries, e)
		}
	}
	for h := range a.options.Configuration().Hosts() {
		if f.Host != 0 && h.ID != f.Host || n.host != "" && h.Host != n.host || n.group != "" && !slices.Contains(h.Groups, n.group) {
			continue
		}
		if n.key != "" && !strings.Contains(n.key, "*") {
			if e, ok := a.options.Catalog.ByKey(h.ID, n.key); ok {
				add(e)
			}
			continue
		}
		for _, id := range a.options.Catalog.HostItems(h.ID) {
			if e, ok := a.options.Catalog.Item(id); ok && (n.key == "" || fits(n.key, e.Key)) {
				add(e)
			}
		}
	}
	slices.SortFunc(entries, func(x, y model.Entry) int {
		if x.ID < y.ID {
			return -1
		}
		return 1
	})
	return entries[:min(len(entries), f.Limit)], total
}

// fits reports whether a text is a pattern in which * stands for any text, the empty one too.
func fits(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	last := len(parts) - 1
	if last == 0 {
		return pattern == text
	}
	if !strings.HasPrefix(text, parts[0]) || len(text) < len(parts[0])+len(parts[last]) || !strings.HasSuffix(text, parts[last]) {
		return false
	}
	text = text[len(parts[0]) : len(text)-len(parts[last])]
	for _, part := range parts[1:last] {
		at := strings.Index(text, part)
		if at < 0 {
			return false
		}
		text = text[at+len(part):]
	}
	return true
}
