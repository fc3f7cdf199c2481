package confcache

import "tidemark/model"

// Draft returns a snapshot of one host that is not in force, with user macros expanded: for tests of a configuration before it is stored. global
// are the macros that hold for all hosts. key gives the key of an item as it is after its macros are expanded.
func Draft(c *model.HostConfig, global Globals) (s *Snapshot, key func(string) string) {
	b := newBuilder(emptySnapshot(), 0, global)
	b.put(c)
	levels := macros{levels: []macroLevel{newLevel(c.Host.Macros), newLevel(c.TemplateMacros), newLevel(global.Macros)}}
	return b.finish().Snapshot, func(key string) string {
		if expanded, err := levels.key(key); err == nil {
			return expanded
		}
		return key
	}
}
