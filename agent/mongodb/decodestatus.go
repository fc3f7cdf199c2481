package mongodb

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// field is one number of serverStatus. The names are those of MongoDB's manual, page "serverStatus".
type field struct {
	// path are the names to the number, with dots between them; where versions differ, several with "|" between them.
	path, family, mode, title, units string
	// scale is what the number is multiplied with; 0 means that it is a whole number as it is.
	scale float64
	rises bool
}

const (
	micros = 1e-6
	millis = 1e-3
	mib    = 1 << 20
)

const wt = "wiredTiger."

// statusFields are what is taken of serverStatus.
var statusFields = []field{
	{"uptime", "server", "uptime", "Uptime", "s", 1, false},
	{"asserts.regular", "asserts", "regular", "Asserts, regular", "", 0, true},
	{"asserts.warning", "asserts", "warning", "Asserts, warnings", "", 0, true},
	{"asserts.msg", "asserts", "msg", "Asserts, messages", "", 0, true},
	{"asserts.user", "asserts", "user", "Errors that clients caused", "", 0, true},

	{"connections.current", "connections", "current", "Connections", "", 0, false},
	{"connections.available", "connections", "available", "Connections that are left", "", 0, false},
	{"connections.active", "connections", "active", "Connections with a request under way", "", 0, false},
	{"connections.totalCreated", "connections", "created", "Connections opened", "", 0, true},
	{"connections.rejected", "connections", "rejected", "Connections refused", "", 0, true},
	{"connections.exhaustIsMaster", "connections", "monitoring", "Connections that watch the topology", "", 0, false},

	{"opcounters.insert", "operations", "insert", "Inserts", "", 0, true},
	{"opcounters.query", "operations", "query", "Queries", "", 0, true},
	{"opcounters.update", "operations", "update", "Updates", "", 0, true},
	{"opcounters.delete", "operations", "delete", "Deletes", "", 0, true},
	{"opcounters.getmore", "operations", "getmore", "getMores", "", 0, true},
	{"opcounters.command", "operations", "command", "Commands", "", 0, true},
	{"opcountersRepl.insert", "operations.replicated", "insert", "Inserts from the replica set", "", 0, true},
	{"opcountersRepl.update", "operations.replicated", "update", "Updates from the replica set", "", 0, true},
	{"opcountersRepl.delete", "operations.replicated", "delete", "Deletes from the replica set", "", 0, true},

	{"opLatencies.reads.latency", "latency", "reads.time", "Time in reads", "s", micros, true},
	{"opLatencies.reads.ops", "latency", "reads.count", "Reads", "", 0, true},
	{"opLatencies.writes.latency", "latency", "writes.time", "Time in writes", "s", micros, true},
	{"opLatencies.writes.ops", "latency", "writes.count", "Writes", "", 0, true},
	{"opLatencies.commands.latency", "latency", "commands.time", "Time in other commands", "s", micros, true},
	{"opLatencies.commands.ops", "latency", "commands.count", "Other commands", "", 0, true},
	{"opLatencies.transactions.latency", "latency", "transactions.time", "Time in transactions", "s", micros, true},
	{"opLatencies.transactions.ops", "latency", "transactions.count", "Transactions", "", 0, true},

	{"network.bytesIn", "network", "in", "Bytes received", "B", 0, true},
	{"network.bytesOut", "network", "out", "Bytes sent", "B", 0, true},
	{"network.physicalBytesIn", "network", "in.physical", "Bytes received, compressed", "B", 0, true},
	{"network.physicalBytesOut", "network", "out.physical", "Bytes sent, compressed", "B", 0, true},
	{"network.numRequests", "network", "requests", "Requests", "", 0, true},
	{"network.numSlowDNSOperations", "network", "dns.slow", "Slow name look-ups", "", 0, true},

	{"mem.resident", "memory", "resident", "Memory, resident", "B", mib, false},
	{"mem.virtual", "memory", "virtual", "Memory, virtual", "B", mib, false},
	{"extra_info.page_faults", "memory", "faults", "Page faults that read from disk", "", 0, true},
	{"tcmalloc.generic.current_allocated_bytes", "memory", "allocated", "Memory, allocated", "B", 0, false},
	{"tcmalloc.generic.heap_size", "memory", "heap", "Memory, heap", "B", 0, false},

	{"globalLock.currentQueue.readers", "queue", "readers", "Readers that wait for a lock", "", 0, false},
	{"globalLock.currentQueue.writers", "queue", "writers", "Writers that wait for a lock", "", 0, false},
	{"globalLock.activeClients.readers", "clients", "readers", "Readers at work", "", 0, false},
	{"globalLock.activeClients.writers", "clients", "writers", "Writers at work", "", 0, false},
	{"queues.execution.read.out|" + wt + "concurrentTransactions.read.out", "tickets", "read.used", "Read tickets in use", "", 0, false},
	{"queues.execution.read.available|" + wt + "concurrentTransactions.read.available", "tickets", "read.free", "Read tickets that are left", "", 0, false},
	{"queues.execution.write.out|" + wt + "concurrentTransactions.write.out", "tickets", "write.used", "Write tickets in use", "", 0, false},
	{"queues.execution.write.available|" + wt + "concurrentTransactions.write.available", "tickets", "write.free", "Write tickets that are left", "", 0, false},
	{"queues.execution.read.normalPriority.queueLength", "queue", "tickets.read", "Reads that wait for a ticket", "", 0, false},
	{"queues.execution.write.normalPriority.queueLength", "queue", "tickets.write", "Writes that wait for a ticket", "", 0, false},
	{"flowControl.isLagged", "flowcontrol", "lagged", "Writes are slowed down for lagging members", "", 0, false},
	{"flowControl.timeAcquiringMicros", "flowcontrol", "time", "Time that writes waited for lagging members", "s", micros, true},

	{wt + "cache.bytes currently in the cache", "cache", "used", "Cache, used", "B", 0, false},
	{wt + "cache.maximum bytes configured", "cache", "size", "Cache, size", "B", 0, false},
	{wt + "cache.tracked dirty bytes in the cache", "cache", "dirty", "Cache, changed and not yet written", "B", 0, false},
	{wt + "cache.bytes read into cache", "cache", "read.bytes", "Cache, bytes read", "B", 0, true},
	{wt + "cache.bytes written from cache", "cache", "written.bytes", "Cache, bytes written", "B", 0, true},
	{wt + "cache.pages read into cache", "cache", "read.pages", "Cache, pages read", "", 0, true},
	{wt + "cache.pages written from cache", "cache", "written.pages", "Cache, pages written", "", 0, true},
	{wt + "cache.pages requested from the cache", "cache", "requested.pages", "Cache, pages asked for", "", 0, true},
	{wt + "cache.unmodified pages evicted", "cache", "evicted.clean", "Cache, unchanged pages dropped", "", 0, true},
	{wt + "cache.modified pages evicted", "cache", "evicted.dirty", "Cache, changed pages dropped", "", 0, true},
	{wt + "cache.pages evicted by application threads|" + wt + "cache.page evict attempts by application threads", "cache", "evicted.clients", "Cache, pages that requests had to drop themselves", "", 0, true},
	{wt + "log.log bytes written", "journal", "bytes", "Journal, bytes written", "B", 0, true},
	{wt + "log.log sync operations", "journal", "syncs", "Journal, syncs", "", 0, true},
	{wt + "log.log sync time duration (usecs)", "journal", "time", "Journal, time in syncs", "s", micros, true},
	{wt + "checkpoint.most recent time (msecs)|" + wt + "transaction.transaction checkpoint most recent time (msecs)", "checkpoint", "last", "Time of the last checkpoint", "s", millis, false},
	{wt + "checkpoint.total time (msecs)|" + wt + "transaction.transaction checkpoint total time (msecs)", "checkpoint", "time", "Time in checkpoints", "s", millis, true},

	{"metrics.cursor.open.total", "cursors", "open", "Cursors open", "", 0, false},
	{"metrics.cursor.open.pinned", "cursors", "pinned", "Cursors at work", "", 0, false},
	{"metrics.cursor.open.noTimeout", "cursors", "endless", "Cursors that never time out", "", 0, false},
	{"metrics.cursor.timedOut", "cursors", "timedout", "Cursors timed out", "", 0, true},
	{"metrics.cursor.totalOpened", "cursors", "opened", "Cursors opened", "", 0, true},
	{"metrics.document.inserted", "documents", "inserted", "Documents inserted", "", 0, true},
	{"metrics.document.returned", "documents", "returned", "Documents returned", "", 0, true},
	{"metrics.document.updated", "documents", "updated", "Documents updated", "", 0, true},
	{"metrics.document.deleted", "documents", "deleted", "Documents deleted", "", 0, true},
	{"metrics.queryExecutor.scanned", "scanned", "keys", "Index keys read", "", 0, true},
	{"metrics.queryExecutor.scannedObjects", "scanned", "documents", "Documents read", "", 0, true},
	{"metrics.queryExecutor.collectionScans.total", "scanned", "collections", "Whole collections read", "", 0, true},
	{"metrics.operation.scanAndOrder", "sorts", "unindexed", "Sorts without an index", "", 0, true},
	{"metrics.query.sort.spillToDisk", "sorts", "spilled", "Sorts that went to disk", "", 0, true},
	{"metrics.query.sort.totalBytesSorted", "sorts", "bytes", "Bytes sorted", "B", 0, true},
	{"metrics.query.sort.totalKeysSorted", "sorts", "keys", "Keys sorted", "", 0, true},
	{"metrics.operation.writeConflicts", "writes", "conflicts", "Write conflicts", "", 0, true},
	{"metrics.getLastError.wtime.num", "writes", "waited", "Writes that waited for members", "", 0, true},
	{"metrics.getLastError.wtime.totalMillis", "writes", "waited.time", "Time that writes waited for members", "s", millis, true},
	{"metrics.getLastError.wtimeouts", "writes", "timedout", "Writes that members did not confirm in time", "", 0, true},
	{"metrics.ttl.deletedDocuments", "ttl", "deleted", "Documents that expired", "", 0, true},
	{"metrics.ttl.passes", "ttl", "passes", "Searches for expired documents", "", 0, true},
	{"metrics.repl.apply.ops", "replication", "applied", "Operations of the oplog applied", "", 0, true},
	{"metrics.repl.network.bytes", "replication", "bytes", "Bytes of the oplog received", "B", 0, true},
	{"metrics.repl.buffer.count|metrics.repl.buffer.write.count", "replication", "buffered", "Operations of the oplog that wait", "", 0, false},

	{"transactions.currentOpen", "transactions", "open", "Transactions open", "", 0, false},
	{"transactions.currentActive", "transactions", "active", "Transactions at work", "", 0, false},
	{"transactions.currentInactive", "transactions", "idle", "Transactions that are open and idle", "", 0, false},
	{"transactions.totalStarted", "transactions", "started", "Transactions started", "", 0, true},
	{"transactions.totalCommitted", "transactions", "committed", "Transactions committed", "", 0, true},
	{"transactions.totalAborted", "transactions", "aborted", "Transactions aborted", "", 0, true},
	{"logicalSessionRecordCache.activeSessionsCount", "sessions", "active", "Sessions", "", 0, false},
}

// The locks that are told, and their modes as serverStatus writes them.
var (
	lockKinds = []string{"Global", "Database", "Collection", "oplog"}
	lockModes = [...][3]string{{"r", "intent.shared", "intent shared"}, {"w", "intent.exclusive", "intent exclusive"}, {"R", "shared", "shared"}, {"W", "exclusive", "exclusive"}}
)

// decodeStatus reads an answer of serverStatus.
func decodeStatus(answer bson.Raw, put func(sample)) {
	for i := range statusFields {
		f := &statusFields[i]
		if v, ok := first(answer, f.path); ok {
			f.put(v, put)
		}
	}
	for _, kind := range lockKinds {
		for _, mode := range lockModes {
			of := [2]string{"lock", kind}
			for _, f := range [...]field{
				{"locks." + kind + ".acquireCount." + mode[0], "locks", mode[1] + ".count", "Locks taken, " + mode[2], "", 0, true},
				{"locks." + kind + ".acquireWaitCount." + mode[0], "locks", mode[1] + ".waits", "Locks waited for, " + mode[2], "", 0, true},
				{"locks." + kind + ".timeAcquiringMicros." + mode[0], "locks", mode[1] + ".time", "Time waited for locks, " + mode[2], "s", micros, true},
			} {
				if v, ok := first(answer, f.path); ok {
					f.put(v, func(s sample) { put(s.about(of)) })
				}
			}
		}
	}
}

// decodeFacts reads what is text in an answer of serverStatus; it changes seldom.
func decodeFacts(answer bson.Raw, put func(sample)) {
	for _, f := range [...][3]string{{"version", "version", "Version"}, {"process", "process", "Program"}, {"storageEngine.name", "engine", "Storage engine"}, {"repl.setName", "set", "Replica set"}} {
		if v, err := answer.LookupErr(strings.Split(f[0], ".")...); err == nil {
			if text, ok := v.StringValueOK(); ok && len(text) <= maxNameBytes {
				put(wording("server", f[1], f[2], text))
			}
		}
	}
}

// put hands on the number of a field.
func (f *field) put(v float64, put func(sample)) {
	if f.scale != 0 && f.scale != mib {
		put(fraction(f.family, f.mode, f.title, f.units, v*f.scale, f.rises))
		return
	}
	if v < 0 || v >= 1<<63 {
		return
	}
	if f.scale == mib {
		v *= mib
	}
	put(whole(f.family, f.mode, f.title, f.units, uint64(v), f.rises))
}

// first returns the number at the first of several paths that is there.
func first(in bson.Raw, paths string) (float64, bool) {
	for path := range strings.SplitSeq(paths, "|") {
		if v, ok := number(in, strings.Split(path, ".")...); ok {
			return v, true
		}
	}
	return 0, false
}

// number reads a number of any of BSON's types, or a boolean. Whole numbers are exact up to 2^53.
func number(in bson.Raw, path ...string) (float64, bool) {
	v, err := in.LookupErr(path...)
	if err != nil {
		return 0, false
	}
	return numberOf(v)
}

func numberOf(v bson.RawValue) (float64, bool) {
	switch v.Type {
	case bson.TypeInt32:
		n, ok := v.Int32OK()
		return float64(n), ok
	case bson.TypeInt64:
		n, ok := v.Int64OK()
		return float64(n), ok
	case bson.TypeDouble:
		n, ok := v.DoubleOK()
		return n, ok && n == n
	case bson.TypeBoolean:
		b, ok := v.BooleanOK()
		if b {
			return 1, ok
		}
		return 0, ok
	}
	return 0, false
}
