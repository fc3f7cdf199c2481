package shape

// part says which field of a command belongs to its shape, and how it is printed.
type part struct {
	field string
	// label stands before the value; empty for the main part.
	label string
	mode  mode
	// present prints only the label: the value is a number or a flag, and only whether it is set matters.
	present bool
}

// layout lists the parts of a known command in the order in which they are printed.
type layout struct {
	// name is the command's usual spelling.
	name  string
	parts []part
	// statements names the array whose elements are statements of their own, or is empty.
	statements string
	// slots finds a field by the first eight bytes of its name; multiplier spreads them without collisions.
	slots      [fieldSlots]fieldSlot
	multiplier uint64
}

// fieldSlot is a field that matters: a part, or one of those that mark a command.
type fieldSlot struct {
	word  uint64
	name  string
	index int8 // of the part, or one of the below
}

const (
	markField = -1
	noField   = -2
)

const (
	fieldSlots    = 64
	fieldSlotBits = 6
)

// slot returns where a field stands if it matters.
func (l *layout) slot(word uint64) *fieldSlot {
	return &l.slots[word*l.multiplier>>(64-fieldSlotBits)]
}

// part returns the index of the part that a field is, or -1.
func (l *layout) part(key []byte) int {
	for i := range l.parts {
		if l.parts[i].field == string(key) {
			return i
		}
	}
	return -1
}

// markFields are the fields that are no part of a shape but say where and how a command goes.
var markFields = []string{"$db", "updates", "deletes", "tailable", "shardVersion", "databaseVersion", "$replData", "$oplogQueryData", "$configServerState", "$configTime"}

// firstWord returns the first eight bytes of a name as they are read from a document, with zero bytes behind a shorter one.
func firstWord(name string) (w uint64) {
	for i := range min(len(name), 8) {
		w |= uint64(name[i]) << (8 * i)
	}
	return w
}

// prepared fills in the slots.
func prepared(l *layout) *layout {
	var fields []fieldSlot
	for i, p := range l.parts {
		fields = append(fields, fieldSlot{word: firstWord(p.field), name: p.field, index: int8(i)})
	}
	for _, name := range markFields {
		fields = append(fields, fieldSlot{word: firstWord(name), name: name, index: markField})
	}
	for l.multiplier = mixA; !l.place(fields); l.multiplier += mixB - 1 {
	}
	return l
}

// place puts the fields into their slots; false when two want the same one. There are four times as many slots as fields, so that a
// multiplier is soon found.
func (l *layout) place(fields []fieldSlot) bool {
	for i := range l.slots {
		l.slots[i] = fieldSlot{index: noField}
	}
	for _, f := range fields {
		s := l.slot(f.word)
		if s.name != "" {
			return false
		}
		*s = f
	}
	return true
}

// layouts are the commands whose fields have a meaning that is known; by name in lower case. Others are printed with all their
// fields.
var layouts = func() map[string]*layout {
	m := map[string]*layout{
		"find": {name: "find", parts: []part{
			{field: "filter"},
			{field: "sort", label: "sort", mode: keepDirections},
			{field: "projection", label: "projection", mode: keepPaths},
			{field: "hint", label: "hint", mode: keepDirections},
			{field: "skip", label: "skip ?", present: true},
			{field: "limit", label: "limit ?", present: true},
		}},
		"aggregate": {name: "aggregate", parts: []part{{field: "pipeline", mode: inPipeline}, {field: "hint", label: "hint", mode: keepDirections}}},
		"count":     {name: "count", parts: []part{{field: "query"}, {field: "skip", label: "skip ?", present: true}, {field: "limit", label: "limit ?", present: true}}},
		"distinct":  {name: "distinct", parts: []part{{field: "key", mode: keepName}, {field: "query"}}},
		"findandmodify": {name: "findAndModify", parts: []part{
			{field: "query"},
			{field: "sort", label: "sort", mode: keepDirections},
			{field: "update", label: "update", mode: inUpdate},
			{field: "remove", label: "remove", present: true},
			{field: "upsert", label: "upsert", present: true},
			{field: "fields", label: "projection", mode: keepPaths},
		}},
		"insert":        {name: "insert"},
		"update":        {name: "update", statements: "updates"},
		"delete":        {name: "delete", statements: "deletes"},
		"bulkwrite":     {name: "bulkWrite", statements: "ops"},
		"getmore":       {name: "getMore"},
		"killcursors":   {name: "killCursors"},
		"mapreduce":     {name: "mapReduce", parts: []part{{field: "query"}, {field: "sort", label: "sort", mode: keepDirections}}},
		"createindexes": {name: "createIndexes", parts: []part{{field: "indexes", mode: keepDirections}}},
		"endsessions":   {name: "endSessions"},
		"getlasterror":  {name: "getLastError"},
		"ping":          {name: "ping"},
	}
	for _, l := range m {
		prepared(l)
	}
	return m
}()

// The parts of single statements.
var (
	updateStatement = prepared(&layout{parts: []part{{field: "q"}, {field: "u", mode: inUpdate}, {field: "multi", label: "multi", present: true}, {field: "upsert", label: "upsert", present: true}}})
	deleteStatement = prepared(&layout{parts: []part{{field: "q"}, {field: "limit", label: "one", present: true}}})
	bulkUpdate      = prepared(&layout{parts: []part{{field: "filter"}, {field: "updateMods", mode: inUpdate}, {field: "multi", label: "multi", present: true}, {field: "upsert", label: "upsert", present: true}}})
	bulkDelete      = prepared(&layout{parts: []part{{field: "filter"}, {field: "multi", label: "multi", present: true}}})
	bulkInsert      = prepared(&layout{})
)

// The commands that are found without reading all their fields: most of the traffic.
var frequent = struct{ find, insert, aggregate, count, distinct, findAndModify, update, delete *layout }{
	layouts["find"], layouts["insert"], layouts["aggregate"], layouts["count"], layouts["distinct"], layouts["findandmodify"], layouts["update"], layouts["delete"],
}

func frequentLayout(key []byte) *layout {
	switch string(key) {
	case "find":
		return frequent.find
	case "insert":
		return frequent.insert
	case "aggregate":
		return frequent.aggregate
	case "count":
		return frequent.count
	case "distinct":
		return frequent.distinct
	case "findAndModify":
		return frequent.findAndModify
	case "update":
		return frequent.update
	case "delete":
		return frequent.delete
	}
	return nil
}

// silent are the commands whose bodies are never read because they carry secrets.
var silent = map[string]bool{
	"saslstart": true, "saslcontinue": true, "authenticate": true, "getnonce": true, "logout": true, "createuser": true, "updateuser": true,
	"copydb": true, "copydbgetnonce": true, "copydbsaslstart": true, "setparameter": true, "usersinfo": true,
}

// bare are the commands whose first value is a name or a setting, not a collection: of users, roles, shards, parameters.
var bare = map[string]bool{
	"dropuser": true, "dropallusersfromdatabase": true, "grantrolestouser": true, "revokerolesfromuser": true, "createrole": true, "updaterole": true,
	"droprole": true, "grantprivilegestorole": true, "revokeprivilegesfromrole": true, "grantrolestorole": true, "revokerolesfromrole": true,
	"rolesinfo": true, "getparameter": true, "setfeaturecompatibilityversion": true, "configurefailpoint": true, "getlog": true, "addshard": true,
	"removeshard": true, "enablesharding": true, "moveprimary": true, "addshardtozone": true, "removeshardfromzone": true, "logrotate": true,
	"killop": true, "killsessions": true, "killallsessions": true, "ping": true, "eval": true, "$eval": true, "logmessage": true,
	"logapplicationmessage": true,
}

// qualified are the commands whose first value is "database.collection".
var qualified = map[string]bool{
	"renamecollection": true, "shardcollection": true, "movechunk": true, "movecollection": true, "split": true, "splitchunk": true, "mergechunks": true,
	"updatezonekeyrange": true, "refinecollectionshardkey": true, "reshardcollection": true, "unshardcollection": true, "balancercollectionstatus": true,
	"getshardversion": true, "clearjumboflag": true, "analyzeshardkey": true, "configurequeryanalyzer": true, "moverange": true,
	"mergeallchunksonshard": true, "splitvector": true, "checkshardingindex": true, "cleanuporphaned": true, "setallowmigrations": true,
	"commitreshardcollection": true, "abortreshardcollection": true, "cleanupreshardcollection": true, "datasize": true,
	"clonecollection": true,
}

// monitoring are the commands by which drivers watch servers; they wait on purpose and are kept apart.
var monitoring = map[string]bool{"hello": true, "ismaster": true}

// replication are the commands that members of a cluster send each other.
var replication = map[string]bool{
	"replsetheartbeat": true, "replsetupdateposition": true, "replsetrequestvotes": true, "_isself": true,
}

// inside reports whether a field marks what members of a cluster and routers send each other.
func inside(key []byte) bool {
	if len(key) < 9 {
		return false
	}
	switch string(key) {
	case "shardVersion", "databaseVersion", "$replData", "$oplogQueryData", "$configServerState", "$configTime":
		return true
	}
	return false
}

// ignored are the fields of any command that say how, not what: session, transaction, limits of time, routing.
var ignored = map[string]bool{
	"lsid": true, "txnNumber": true, "autocommit": true, "startTransaction": true, "stmtId": true, "stmtIds": true, "maxTimeMS": true,
	"maxAwaitTimeMS": true, "comment": true, "let": true, "readConcern": true, "writeConcern": true, "apiVersion": true, "apiStrict": true,
	"apiDeprecationErrors": true, "cursor": true, "batchSize": true, "singleBatch": true, "ordered": true, "bypassDocumentValidation": true,
	"allowDiskUse": true, "noCursorTimeout": true, "mayBypassWriteBlocking": true, "runtimeConstants": true, "collation": true, "topologyVersion": true,
	"documents": true, "cursors": true, "signature": true, "recoveryToken": true,
}
