package mongodb

import (
	"cmp"
	"iter"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// eachDocument yields the documents of an array.
func eachDocument(in bson.Raw, path ...string) iter.Seq[bson.Raw] {
	return func(yield func(bson.Raw) bool) {
		v, err := in.LookupErr(path...)
		if err != nil {
			return
		}
		array, ok := v.ArrayOK()
		if !ok {
			return
		}
		values, err := array.Values()
		if err != nil {
			return
		}
		for _, one := range values {
			if d, ok := one.DocumentOK(); ok && !yield(d) {
				return
			}
		}
	}
}

// text reads a name, of a bounded length.
func text(in bson.Raw, path ...string) string {
	v, err := in.LookupErr(path...)
	if err != nil {
		return ""
	}
	if s, ok := v.StringValueOK(); ok && len(s) <= 255 {
		return s
	}
	return ""
}

// date reads a time in milliseconds.
func date(in bson.Raw, path ...string) (int64, bool) {
	v, err := in.LookupErr(path...)
	if err != nil || v.Type != bson.TypeDateTime {
		return 0, false
	}
	return v.DateTimeOK()
}

// The states of a member that matter here (manual, page "Replica Set Member States").
const (
	statePrimary = 1
	stateArbiter = 7
)

// decodeReplicaSet reads an answer of replSetGetStatus. A member's lag is how much older its last operation is than the primary's, or
// than the newest where there is no primary.
func decodeReplicaSet(answer bson.Raw, put func(sample)) {
	if state, ok := number(answer, "myState"); ok && state >= 0 {
		put(whole("replication", "state", "State in the replica set", "", uint64(state), false))
	}
	newest, primary := int64(0), false
	eachDocument(answer, "members")(func(d bson.Raw) bool {
		at, ok := date(d, "optimeDate")
		state, _ := number(d, "state")
		switch {
		case !ok:
		case state == statePrimary:
			newest, primary = at, true
		case !primary:
			newest = max(newest, at)
		}
		return true
	})
	members, healthy, voting := uint64(0), uint64(0), uint64(0)
	eachDocument(answer, "members")(func(d bson.Raw) bool {
		members++
		state, _ := number(d, "state")
		if health, ok := number(d, "health"); ok && health > 0 {
			healthy++
		}
		if state == statePrimary {
			voting++
		}
		if members <= maxMembers {
			decodeMember(d, state, newest, put)
		}
		return true
	})
	if members > 0 {
		put(whole("replication", "members", "Members of the replica set", "", members, false))
		put(whole("replication", "healthy", "Members that answer", "", healthy, false))
		put(whole("replication", "primaries", "Primaries that this member sees", "", voting, false))
	}
}

func decodeMember(d bson.Raw, state float64, newest int64, put func(sample)) {
	name := text(d, "name")
	if name == "" {
		return
	}
	of := [2]string{"member", name}
	put(whole("member", "state", "State", "", uint64(max(state, 0)), false).about(of))
	if health, ok := number(d, "health"); ok && health >= 0 {
		put(whole("member", "health", "Answers", "", uint64(health), false).about(of))
	}
	if ping, ok := number(d, "pingMs"); ok {
		put(fraction("member", "ping", "Time of a round trip", "s", ping*millis, false).about(of))
	}
	at, ok := date(d, "optimeDate")
	if !ok || newest == 0 || state == stateArbiter {
		return
	}
	lag := fraction("member", "lag", "Replication lag", "s", float64(max(newest-at, 0))*millis, false)
	put(lag.about(of))
	if self, _ := number(d, "self"); self == 1 {
		lag.family = "replication"
		put(lag)
	}
}

// decodeOplog reads the oldest and the newest entry of the oplog, from two answers to find.
func decodeOplog(oldest, newest bson.Raw, put func(sample)) error {
	var at [2]uint32
	found := 0
	for i, answer := range []bson.Raw{oldest, newest} {
		eachDocument(answer, "cursor", "firstBatch")(func(d bson.Raw) bool {
			if v, err := d.LookupErr("ts"); err == nil {
				if seconds, _, ok := v.TimestampOK(); ok {
					at[i] = seconds
					found++
				}
			}
			return false
		})
	}
	if found != len(at) {
		return errNothing
	}
	put(fraction("replication", "oplog", "Time that the oplog reaches back", "s", max(float64(at[1])-float64(at[0]), 0), false).seldom())
	return nil
}

// operationKinds are the operations that are counted by name; others count as "other".
var operationKinds = []string{"command", "getmore", "insert", "query", "remove", "update", "none"}

// decodeOperations reads the counts of operations under way.
func decodeOperations(answer bson.Raw, put func(sample)) {
	counts := map[string]float64{}
	total, waiting, longest := 0.0, 0.0, 0.0
	eachDocument(answer, "cursor", "firstBatch")(func(d bson.Raw) bool {
		n, ok := number(d, "count")
		if !ok || n < 0 {
			return true
		}
		kind := text(d, "_id", "op")
		if !slices.Contains(operationKinds, kind) {
			kind = "other"
		}
		counts[kind] += n
		total += n
		if waits, _ := number(d, "_id", "waits"); waits == 1 {
			waiting += n
		}
		if t, ok := number(d, "longest"); ok && kind != "none" {
			longest = max(longest, t)
		}
		return true
	})
	for kind, n := range counts {
		put(whole("running", kind, "Operations under way, "+kind, "", uint64(n), false))
	}
	put(whole("running", "all", "Operations under way", "", uint64(total), false))
	put(whole("running", "waiting", "Operations that wait for a lock", "", uint64(waiting), false))
	put(fraction("running", "longest", "Age of the longest operation", "s", longest*micros, false))
}

// busiest lists the collections of an answer of top, those with the most time first.
func busiest(answer bson.Raw) []namespace {
	type used struct {
		namespace
		time float64
	}
	var all []used
	eachTotal(answer, func(n namespace, d bson.Raw) bool {
		time, _ := number(d, "total", "time")
		all = append(all, used{n, time})
		return len(all) < maxListed
	})
	slices.SortFunc(all, func(a, b used) int {
		return cmp.Or(cmp.Compare(b.time, a.time), cmp.Compare(a.String(), b.String()))
	})
	names := make([]namespace, len(all))
	for i := range all {
		names[i] = all[i].namespace
	}
	return names
}

// eachTotal calls fn for every collection in an answer of top.
func eachTotal(answer bson.Raw, fn func(namespace, bson.Raw) bool) {
	v, err := answer.LookupErr("totals")
	if err != nil {
		return
	}
	totals, ok := v.DocumentOK()
	if !ok {
		return
	}
	elements, err := totals.Elements()
	if err != nil {
		return
	}
	for _, e := range elements {
		name, err := e.KeyErr()
		if err != nil {
			return
		}
		n, wanted := splitNamespace(name)
		value, err := e.ValueErr()
		if !wanted || err != nil {
			continue
		}
		if d, ok := value.DocumentOK(); ok && !fn(n, d) {
			return
		}
	}
}

// decodeTop reads the times of the chosen collections.
func decodeTop(answer bson.Raw, chosen []namespace, put func(sample)) {
	wanted := make(map[namespace]bool, len(chosen))
	for _, n := range chosen {
		wanted[n] = true
	}
	eachTotal(answer, func(n namespace, d bson.Raw) bool {
		if !wanted[n] {
			return true
		}
		for _, f := range [...][3]string{{"total", "total", "requests"}, {"readLock", "reads", "reads"}, {"writeLock", "writes", "writes"}} {
			if time, ok := number(d, f[0], "time"); ok {
				put(fraction("collection", f[1]+".time", "Time in "+f[2], "s", time*micros, true).about(n.of()...))
			}
			if count, ok := number(d, f[0], "count"); ok && count >= 0 {
				put(whole("collection", f[1]+".count", "Number of "+f[2], "", uint64(count), true).about(n.of()...))
			}
		}
		return true
	})
}

// sizeFields are what is taken of dbStats and of storageStats.
var (
	databaseFields = []field{
		{"collections", "database", "collections", "Collections", "", 0, false},
		{"objects", "database", "documents", "Documents", "", 0, false},
		{"dataSize", "database", "data", "Size of the documents", "B", 0, false},
		{"storageSize", "database", "storage", "Size on disk, documents", "B", 0, false},
		{"indexes", "database", "indexes", "Indexes", "", 0, false},
		{"indexSize", "database", "index.storage", "Size on disk, indexes", "B", 0, false},
	}
	collectionFields = []field{
		{"storageStats.count", "collection", "documents", "Documents", "", 0, false},
		{"storageStats.size", "collection", "data", "Size of the documents", "B", 0, false},
		{"storageStats.avgObjSize", "collection", "document", "Size of a document, mean", "B", 0, false},
		{"storageStats.storageSize", "collection", "storage", "Size on disk, documents", "B", 0, false},
		{"storageStats.freeStorageSize", "collection", "storage.free", "Free room in the files", "B", 0, false},
		{"storageStats.nindexes", "collection", "indexes", "Indexes", "", 0, false},
		{"storageStats.totalIndexSize", "collection", "index.storage", "Size on disk, indexes", "B", 0, false},
		{"storageStats.wiredTiger.cache.bytes currently in the cache", "collection", "cached", "Bytes in the cache", "B", 0, false},
		{"storageStats.wiredTiger.cache.bytes read into cache", "collection", "read", "Bytes read into the cache", "B", 0, true},
		{"storageStats.wiredTiger.cache.bytes written from cache", "collection", "written", "Bytes written from the cache", "B", 0, true},
	}
)

// decodeDatabase reads an answer of dbStats.
func decodeDatabase(answer bson.Raw, database string, put func(sample)) {
	for i := range databaseFields {
		if v, ok := first(answer, databaseFields[i].path); ok {
			databaseFields[i].put(v, func(s sample) { put(s.seldom().about([2]string{"db", database})) })
		}
	}
}

// decodeCollection reads a document of $collStats, and the sizes of at most so many indexes. It returns how many those were.
func decodeCollection(d bson.Raw, n namespace, indexes int, put func(sample)) int {
	for i := range collectionFields {
		if v, ok := first(d, collectionFields[i].path); ok {
			collectionFields[i].put(v, func(s sample) { put(s.seldom().about(n.of()...)) })
		}
	}
	v, err := d.LookupErr("storageStats", "indexSizes")
	if err != nil {
		return 0
	}
	sizes, ok := v.DocumentOK()
	if !ok {
		return 0
	}
	elements, err := sizes.Elements()
	if err != nil {
		return 0
	}
	told := 0
	for _, e := range elements {
		name, err := e.KeyErr()
		value, err2 := e.ValueErr()
		if err != nil || err2 != nil || told >= indexes || name == "" || len(name) > 255 {
			break
		}
		if size, ok := numberOf(value); ok && size >= 0 {
			put(whole("index", "storage", "Size on disk", "B", uint64(size), false).seldom().about(append(n.of(), [2]string{"index", name})...))
			told++
		}
	}
	return told
}

// decodeIndexes reads an answer of $indexStats, at most so many indexes of it. It returns how many those were.
func decodeIndexes(answer bson.Raw, n namespace, indexes int, put func(sample)) int {
	told := 0
	eachDocument(answer, "cursor", "firstBatch")(func(d bson.Raw) bool {
		name := text(d, "name")
		uses, ok := number(d, "accesses", "ops")
		if told >= indexes {
			return false
		}
		if name != "" && ok && uses >= 0 {
			put(whole("index", "uses", "Uses", "", uint64(uses), true).seldom().about(append(n.of(), [2]string{"index", name})...))
			told++
		}
		return true
	})
	return told
}
