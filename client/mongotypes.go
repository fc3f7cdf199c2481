package client

// MongoChange is one row of a comparison.
type MongoChange struct {
	MongoNames
	Before MongoSums `json:"before"`
	After  MongoSums `json:"after"`
	// Verdict is new, slower, more, same, less, faster or gone.
	Verdict string `json:"verdict"`
	// LoadChange is the load after less the load before.
	LoadChange float64 `json:"load_change"`
}

// MongoComparison is two ranges side by side.
type MongoComparison struct {
	Instance MongoInstance `json:"instance"`
	GroupBy  string        `json:"group_by"`
	Before   MongoRange    `json:"before"`
	After    MongoRange    `json:"after"`
	Rows     []MongoChange `json:"rows"`
	Found    int           `json:"found"`
}

// MongoErrorCode is an error number of the server and how often it came; Name is what MongoDB calls it, left out where it is not a common one.
type MongoErrorCode struct {
	Code  string `json:"code"`
	Name  string `json:"name,omitempty"`
	Count uint64 `json:"count"`
}

// MongoHeat is a heat map. Bounds are the lower ends of its rows in seconds and the upper end of the last; a cell is column, row, requests.
type MongoHeat struct {
	Bounds Numbers     `json:"bounds"`
	Cells  [][3]uint64 `json:"cells"`
}

// MongoHint is an index that is missing.
type MongoHint struct {
	// Key is its specification.
	Key string `json:"key"`
	// Why says which parts of the shape it serves.
	Why string `json:"why"`
}

// MongoIndex is an index of the collection.
type MongoIndex struct {
	Name string `json:"name"`
	// Key is its specification: "{status: 1, created: -1}".
	Key string `json:"key"`
	// Uses is how often it was used since the server's start, nil where it is not told.
	Uses *uint64 `json:"uses,omitempty"`
}

// MongoIndexTrial is what the plan did before it was kept.
type MongoIndexTrial struct {
	Documents uint64 `json:"documents"`
	Keys      uint64 `json:"keys"`
	Returned  uint64 `json:"returned"`
}

// MongoInstance is a MongoDB server as one agent sees it.
type MongoInstance struct {
	ID       string `json:"id"`
	HostID   string `json:"host_id"`
	Host     string `json:"host"`
	HostName string `json:"host_name"`
	Address  string `json:"address"`
}

// MongoInstanceList is all instances; Total is more than there are rows when there are very many.
type MongoInstanceList struct {
	From      int64                `json:"from"`
	To        int64                `json:"to"`
	Instances []MongoInstanceTotal `json:"instances"`
	Total     int                  `json:"total"`
}

// MongoInstanceTotal is an instance with its totals over the range of the list. Loads is the load in equal slices of the range.
type MongoInstanceTotal struct {
	MongoInstance
	WatchedMS int64     `json:"watched_ms"`
	Total     MongoSums `json:"total"`
	Loads     Numbers   `json:"loads"`
}

// MongoNames say what a row stands for; what does not fit the group is left out.
type MongoNames struct {
	// ID is the fingerprint of a shape, or the text of the group.
	ID          string `json:"id"`
	DB          string `json:"db,omitempty"`
	Collection  string `json:"collection,omitempty"`
	Command     string `json:"command,omitempty"`
	Shape       string `json:"shape,omitempty"`
	Application string `json:"application,omitempty"`
	Client      string `json:"client,omitempty"`
	// Rest says that the row is what is left of the total.
	Rest bool `json:"rest,omitempty"`
}

// MongoPlan is how the server said it answers a shape. It holds no value of a field.
type MongoPlan struct {
	// At is when the server said it; ChangedAt is when the summary changed from Before, 0 if it did not within the last day.
	At        int64  `json:"at"`
	ChangedAt int64  `json:"changed_at,omitempty"`
	Before    string `json:"before,omitempty"`
	// Summary is in the server's words, such as COLLSCAN or "IXSCAN {status: 1}"; empty where it did not say.
	Summary string   `json:"summary"`
	Stages  []string `json:"stages"`
	// Scans says that the whole collection is read, Sorts that documents are sorted in memory.
	Scans    bool     `json:"scans"`
	Sorts    bool     `json:"sorts"`
	Used     []string `json:"used"`
	Rejected int      `json:"rejected"`
	// Trial is what was measured when the server chose the plan that it keeps, null where it does not tell.
	Trial *MongoTrial `json:"trial"`
	// Indexes are those of the collection; IndexesKnown is false where the server did not tell them.
	Indexes      []MongoIndex `json:"indexes"`
	IndexesKnown bool         `json:"indexes_known"`
	// Hints are indexes that would serve the shape and are missing.
	Hints []MongoHint `json:"hints"`
	// Notes say what the server could not be asked for, and why.
	Notes []string `json:"notes"`
}

// MongoProfile is one shape, or a whole instance, over time. The columns begin at At and are StepMS long; where they are null nobody
// watched, and quantiles are null where nothing was answered. All are per second but the quantiles, which are seconds.
type MongoProfile struct {
	Instance MongoInstance `json:"instance"`
	MongoNames
	MongoRange
	StepMS   int64     `json:"step_ms"`
	At       []int64   `json:"at"`
	Load     Numbers   `json:"load"`
	Rate     Numbers   `json:"rate"`
	Errors   Numbers   `json:"errors"`
	BytesIn  Numbers   `json:"bytes_in"`
	BytesOut Numbers   `json:"bytes_out"`
	Docs     Numbers   `json:"docs"`
	P50      Numbers   `json:"p50"`
	P95      Numbers   `json:"p95"`
	P99      Numbers   `json:"p99"`
	Max      Numbers   `json:"max"`
	Heat     MongoHeat `json:"heat"`
	// Plan is how the server answers the shape, null where it was not asked.
	Plan *MongoPlan `json:"plan"`
	// Codes are the errors of the shape by number, what came most first.
	Codes []MongoErrorCode `json:"codes"`
}

// MongoRange is a range with the totals of the instance. WatchedMS is for how long of it there are statistics.
type MongoRange struct {
	From      int64     `json:"from"`
	To        int64     `json:"to"`
	WatchedMS int64     `json:"watched_ms"`
	Total     MongoSums `json:"total"`
}

// MongoRanking is the requests of an instance by what they cost; Found is the number of rows without the limit.
type MongoRanking struct {
	Instance MongoInstance `json:"instance"`
	MongoRange
	GroupBy string     `json:"group_by"`
	Order   string     `json:"order"`
	Rows    []MongoRow `json:"rows"`
	Found   int        `json:"found"`
}

// MongoRow is one row of a ranking. Loads is the load in equal slices of the range.
type MongoRow struct {
	MongoNames
	Sums  MongoSums `json:"sums"`
	Loads Numbers   `json:"loads"`
}

// MongoSums are the totals of one thing over a range: exact amounts, and rates over the time in which the instance was watched.
type MongoSums struct {
	Requests uint64 `json:"requests"`
	Errors   uint64 `json:"errors"`
	BytesIn  uint64 `json:"bytes_in"`
	BytesOut uint64 `json:"bytes_out"`
	Docs     uint64 `json:"docs"`
	// Seconds is the time spent in requests; Load is that per second, so 1 is one request at every moment.
	Seconds float64 `json:"seconds"`
	Load    float64 `json:"load"`
	// Rate is requests per second.
	Rate float64 `json:"rate"`
	// P50 to Max are latencies in seconds, null where none are known.
	P50 *float64 `json:"p50"`
	P95 *float64 `json:"p95"`
	P99 *float64 `json:"p99"`
	Max *float64 `json:"max"`
}

// MongoTrial is what a plan did when it was chosen. ExaminedPerReturned is null when nothing was returned.
type MongoTrial struct {
	MongoIndexTrial
	ExaminedPerReturned *float64 `json:"examined_per_returned"`
}
