package client

import "time"

// Digest is the answer to GET /api/storage/digest.
type Digest struct {
	// From and To are Unix nanoseconds, To not included.
	From   int64  `json:"from,string"`
	To     int64  `json:"to,string"`
	Values uint64 `json:"values"`
	Digest string `json:"digest"`
	// LSN is how far the engine's log was when the digest was begun.
	LSN     uint64  `json:"lsn"`
	Seconds float64 `json:"seconds"`
}

// DirectState says how files are read and written.
type DirectState struct {
	// Setting is what was asked for, Active whether it is done.
	Setting string `json:"setting"`
	Active  bool   `json:"active"`
	// Reason says why it is not.
	Reason string `json:"reason,omitempty"`
	// ReadBytes and WrittenBytes are what was read and written directly since the start.
	ReadBytes    int64 `json:"read_bytes"`
	WrittenBytes int64 `json:"written_bytes"`
	// BufferBytes is the memory for it, at most BufferLimitBytes.
	BufferBytes      int64 `json:"buffer_bytes"`
	BufferLimitBytes int64 `json:"buffer_limit_bytes"`
}

// DroppedPartition is something that housekeeping removed since the start of the process.
type DroppedPartition struct {
	Table string `json:"table"`
	Name  string `json:"name"`
	// At is when, Unix seconds.
	At int64 `json:"at"`
	// Reason is retention, size, or early for want of room.
	Reason string `json:"reason"`
	// Bytes became free; Rows were deleted, of plain tables only, whose room is used again but not given back.
	Bytes  int64   `json:"bytes"`
	Rows   int64   `json:"rows,omitempty"`
	TookMs float64 `json:"took_ms"`
}

// Headroom is the room on the file system of a folder.
type Headroom struct {
	// FileSystem is its kind: ext4, xfs, btrfs, zfs, tmpfs, overlay, nfs, or its number.
	FileSystem string `json:"file_system"`
	// TotalBytes is what is used and what the server may still write.
	TotalBytes int64 `json:"total_bytes"`
	// FreeBytes is what the server may still write.
	FreeBytes int64 `json:"free_bytes"`
	// UsedPercent is of the file system, or of its pool if that is fuller.
	UsedPercent float64 `json:"used_percent"`
	Level       string  `json:"level"`
	// Pool is what lies under ZFS and btrfs, absent where that cannot be told; PoolProblem says why.
	Pool        *StoragePool `json:"pool,omitempty"`
	PoolProblem string       `json:"pool_problem,omitempty"`
}

// HoldState is the state of a hold for the page.
type HoldState struct {
	// AtPercent is storage.headroom.hold_at, zero for never.
	AtPercent int `json:"at_percent"`
	// Held says that the store does not grow now, beyond CeilingBytes.
	Held         bool   `json:"held"`
	CeilingBytes int64  `json:"ceiling_bytes"`
	DeletedPairs uint64 `json:"deleted_pairs"`
	Shrink       bool   `json:"shrink"`
	// Blocked says why shrinking does not go on.
	Blocked string `json:"blocked,omitempty"`
}

// HostShare is what a host has of the store.
type HostShare struct {
	// HostID and Host are empty for what belongs to no host that there is: items and hosts that were deleted.
	HostID string `json:"host_id"`
	Host   string `json:"host"`
	// Bytes is what its values take in closed file pairs, SummaryBytes what their summaries do.
	Bytes        int64 `json:"bytes"`
	SummaryBytes int64 `json:"summary_bytes"`
	// Percent is its part of what the values and summaries of all hosts take there.
	Percent float64 `json:"percent"`
	// LimitBytes is what its values may take before its oldest ones go ahead of those of others when room is needed: storage.host_factor times what other hosts
	// have on average. It is 0 where there is no such bound.
	LimitBytes int64 `json:"limit_bytes"`
	// Over says that its values, or its summaries, pass that.
	Over bool `json:"over"`
}

// HostShares is the answer to GET /api/storage/hosts.
type HostShares struct {
	// Hosts are those that have most, largest first, of those that the caller may see.
	Hosts []HostShare `json:"hosts"`
	// Count is how many have something.
	Count int `json:"count"`
	// Factor is storage.host_factor, 0 where no host gives before others.
	Factor int `json:"factor"`
}

// Housekeeping says what is kept, what goes next, and what went.
type Housekeeping struct {
	Mode string `json:"mode"`
	// SizeBytes is what all tables take, LimitBytes what they may; zero is no limit.
	SizeBytes  int64 `json:"size_bytes"`
	LimitBytes int64 `json:"limit_bytes"`
	// Room is that of the whole database.
	Room    HousekeepingRoom   `json:"room"`
	Tables  []HousekeptTable   `json:"tables"`
	Dropped []DroppedPartition `json:"dropped"`
}

// HousekeepingRoom is how large the database is, how fast it grows, and when its room is used up. What is not known is nil.
type HousekeepingRoom struct {
	DatabaseBytes int64 `json:"database_bytes"`
	// WALBytes is what the write-ahead log takes; only members of pg_monitor may ask for it.
	WALBytes *int64 `json:"wal_bytes"`
	// GrowthPerDay is by how much the database grew, WALPerDay what was written to the log, in bytes a day over the last week.
	GrowthPerDay *float64 `json:"growth_per_day_bytes"`
	WALPerDay    *float64 `json:"wal_per_day_bytes"`
	// TotalBytes is the room: storage.database_space, or that of the disk when the database is on this machine. FreeBytes of it are free.
	TotalBytes  int64    `json:"total_bytes"`
	FreeBytes   int64    `json:"free_bytes"`
	Source      string   `json:"source"`
	UsedPercent *float64 `json:"used_percent"`
	// FullDays is in how many days it is used up at the present growth.
	FullDays *float64 `json:"full_days"`
	// EarlyDropPercent is the use from which the oldest partitions go before their time; zero is never.
	EarlyDropPercent int `json:"early_drop_percent"`
	// MeasuredAt is Unix seconds; zero is never.
	MeasuredAt int64 `json:"measured_at"`
}

// HousekeptTable is a table of one value type and retention class.
type HousekeptTable struct {
	Name string `json:"name"`
	Mode string `json:"mode"`
	// KeepSeconds is its retention; zero is for ever.
	KeepSeconds int64 `json:"keep_seconds"`
	Bytes       int64 `json:"bytes"`
	// Pieces are its partitions or chunks; zero for a plain table.
	Pieces int `json:"pieces"`
	// Next is the piece that goes first, nil when none will.
	Next *NextDrop `json:"next,omitempty"`
}

// LastTrial is the answer to GET /api/storage/trial.
type LastTrial struct {
	// Trial is null when none was made in the data folder.
	Trial *LastTrialRun `json:"trial"`
	// Problem says why its report cannot be read.
	Problem string `json:"problem,omitempty"`
}

// LastTrialRun is a report with when it was made.
type LastTrialRun struct {
	// At is in Unix milliseconds.
	At int64 `json:"at"`
	TrialReport
}

// NextDrop is a partition or chunk that will be dropped. Times are Unix seconds; DueAt is when it is past its retention, and it goes earlier if the
// tables are beyond their limit.
type NextDrop struct {
	Name  string `json:"name"`
	From  int64  `json:"from"`
	To    int64  `json:"to"`
	Bytes int64  `json:"bytes"`
	DueAt int64  `json:"due_at"`
}

// RecompressProgress says how far Recompress is.
type RecompressProgress struct {
	// Pairs and Bytes are what there is to do, datafiles with their journalfiles.
	Pairs int   `json:"pairs"`
	Bytes int64 `json:"bytes"`
	// DonePairs and DoneBytes of them are done, written or left as they were.
	DonePairs int   `json:"done_pairs"`
	DoneBytes int64 `json:"done_bytes"`
	// WrittenPairs are those that were replaced: BeforeBytes became AfterBytes. KeptPairs would not have become smaller, SkippedPairs could
	// not be done now.
	WrittenPairs int `json:"written_pairs"`
	KeptPairs    int `json:"kept_pairs"`
	// MergedPairs of those written became JoinedPairs.
	MergedPairs  int   `json:"merged_pairs"`
	JoinedPairs  int   `json:"joined_pairs"`
	SkippedPairs int   `json:"skipped_pairs"`
	BeforeBytes  int64 `json:"before_bytes"`
	AfterBytes   int64 `json:"after_bytes"`
	// BeforePages became AfterPages.
	BeforePages int64 `json:"before_pages"`
	AfterPages  int64 `json:"after_pages"`
	// FoldedValues are late values that went to the pages where they belong.
	FoldedValues uint64 `json:"folded_values"`
	// File is what is being read, Paused that it waits because the machine is busy.
	File   string `json:"file,omitempty"`
	Paused bool   `json:"paused,omitempty"`
	// Skipped says why the last pair was skipped.
	Skipped string `json:"skipped,omitempty"`
}

// RecompressRequest is the body of POST /api/storage/recompress.
type RecompressRequest struct {
	Codec string `json:"codec"`
	// ExtentBytes is 4 KiB to 4 MiB, zero for 64 KiB.
	ExtentBytes int `json:"extent_bytes"`
	// OlderThanSeconds is the age of the newest value from which on a pair is written anew.
	OlderThanSeconds float64 `json:"older_than_seconds"`
	// BytesPerSecond bounds reading and writing together; zero for no bound.
	BytesPerSecond int64 `json:"bytes_per_second"`
	// MergeBytes lets neighbours with small pages become one pair, as long as their files together take no more; zero for never, -1 for an eighth
	// of the disk space.
	MergeBytes int64 `json:"merge_bytes"`
	// Again takes pairs too that were written anew before; Now does not wait while the machine is busy.
	Again bool `json:"again"`
	Now   bool `json:"now"`
	// Close closes the pair that grows first, so that it is written anew too.
	Close bool `json:"close"`
}

// RecompressState is what is known of the last run, and the one that runs.
type RecompressState struct {
	Running bool `json:"running"`
	// Automatic says that the policy started it.
	Automatic bool `json:"automatic"`
	// Codec, StartedAt and EndedAt are of the last run; times in Unix milliseconds, zero for none.
	Codec     string `json:"codec"`
	StartedAt int64  `json:"started_at"`
	EndedAt   int64  `json:"ended_at"`
	// SecondsLeft is how long it will take at this rate; null when that is not known.
	SecondsLeft *float64           `json:"seconds_left"`
	Progress    RecompressProgress `json:"progress"`
	// Error says why the last run ended early.
	Error string `json:"error,omitempty"`
}

// Retention is how long values are kept, all in seconds; zero leaves it to the items.
type Retention struct {
	HistorySeconds int64 `json:"history_seconds"`
	TrendsSeconds  int64 `json:"trends_seconds"`
	// HistoryFixed and TrendsFixed say that the configuration file sets it, and that only it can change it.
	HistoryFixed bool `json:"history_fixed"`
	TrendsFixed  bool `json:"trends_fixed"`
}

// RetentionBody is the body of a change.
type RetentionBody struct {
	HistorySeconds int64 `json:"history_seconds"`
	TrendsSeconds  int64 `json:"trends_seconds"`
}

// Snapshot is a kept snapshot as the API shows it.
type Snapshot struct {
	Name string `json:"name"`
	// CreatedAt is in Unix milliseconds.
	CreatedAt int64 `json:"created_at"`
	// Bytes is the size of all files, of which most are shared with the store.
	Bytes int64 `json:"bytes"`
	Files int   `json:"files"`
	// TookMs is how long the files of the engine were held, in milliseconds; only in the answer to its making.
	TookMs float64 `json:"took_ms,omitempty"`
	// Copied says that hard links were impossible.
	Copied bool `json:"copied,omitempty"`
}

// SnapshotFile is a file of a snapshot.
type SnapshotFile struct {
	// Path is relative to the data folder, with slashes.
	Path string `json:"path"`
	// Bytes is how much of the file belongs to the snapshot; a hard link may have grown since.
	Bytes int64 `json:"bytes"`
	// SHA256 is that of these bytes, in hexadecimal digits; empty for links, whose content has checksums of its own.
	SHA256 string `json:"sha256,omitempty"`
	// Tail identifies the last bytes of a file that never changes, so that an increment knows it again.
	Tail string `json:"tail,omitempty"`
	// In is the folder of the snapshot that has the file, relative to this one; empty when this one has it.
	In string `json:"in,omitempty"`
}

// SnapshotList is the answer to GET /api/storage/snapshots.
type SnapshotList struct {
	Snapshots []Snapshot `json:"snapshots"`
	// HeldBytes is the room that only snapshots take.
	HeldBytes int64 `json:"held_bytes"`
}

// SnapshotManifest says what belongs to a snapshot.
type SnapshotManifest struct {
	Format int    `json:"format"`
	Name   string `json:"name"`
	// CreatedAt is the moment of the snapshot.
	CreatedAt time.Time `json:"created_at"`
	// Version is that of the program that made it.
	Version string `json:"version"`
	// LSN is how far the engine's log is in it.
	LSN uint64 `json:"lsn"`
	// Encrypted says that a repository has the files encrypted with age.
	Encrypted bool           `json:"encrypted,omitempty"`
	Files     []SnapshotFile `json:"files"`
}

// Storage is the answer to GET /api/storage.
type Storage struct {
	Disk Headroom `json:"disk"`
	// DiskFullDays is in how many days the disk is full at the present rate; null when that cannot be told.
	DiskFullDays *float64 `json:"disk_full_days"`
	// Hold says whether the store may grow while the disk is nearly full.
	Hold HoldState `json:"hold"`
	// UsedBytes of QuotaBytes, zero for no limit, are taken by the store; HeldBytes of them by snapshots alone.
	UsedBytes  int64 `json:"used_bytes"`
	QuotaBytes int64 `json:"quota_bytes"`
	HeldBytes  int64 `json:"held_bytes"`
	// From and To bound what is stored, Unix milliseconds; RetentionDays is how far back a full store will reach, null when not known.
	From          int64    `json:"from"`
	To            int64    `json:"to"`
	RetentionDays *float64 `json:"retention_days"`
	Snapshots     int      `json:"snapshots"`
	// Recompress is the re-compression that is under way, or the last one.
	Recompress RecompressState `json:"recompress"`
	Advice     []string        `json:"advice"`
	StorageContent
}

// StorageClass is what values of a kind take in the closed file pairs.
type StorageClass struct {
	// Class is steady, float, uint, text or binary; steady are numbers that stay the same or grow evenly.
	Class  string `json:"class"`
	Values uint64 `json:"values"`
	Bytes  int64  `json:"bytes"`
}

// StorageClasses is the answer to GET /api/storage/classes.
type StorageClasses struct {
	// Classes are those that there are, the one that takes most first.
	Classes []StorageClass `json:"classes"`
}

// StorageContent is what is stored, a part of the answer to GET /api/storage. Times are Unix milliseconds, zero for none.
type StorageContent struct {
	// Engine is dbengine or postgres.
	Engine string `json:"engine"`
	Values uint64 `json:"values"`
	Items  uint64 `json:"items"`
	// LogBytes of LogLimitBytes are the log of the embedded engine.
	LogBytes      int64 `json:"log_bytes"`
	LogLimitBytes int64 `json:"log_limit_bytes"`
	// Direct says what of the embedded engine goes past the system's cache; nil with PostgreSQL.
	Direct *DirectState  `json:"direct_io,omitempty"`
	Tiers  []StorageTier `json:"tiers"`
	Pairs  []StoragePair `json:"pairs"`
}

// StorageFolder says where the engine's files are, and which folder that is, so that a tool on the same machine knows it again.
type StorageFolder struct {
	Folder string `json:"folder"`
	// Device and Inode are of the folder; numbers as text, since JavaScript's are too short.
	Device uint64 `json:"device,string"`
	Inode  uint64 `json:"inode,string"`
}

// StoragePair is a file pair, or several neighbours of one tier where there are very many.
type StoragePair struct {
	Name    string `json:"name"`
	Tier    string `json:"tier"`
	Count   int    `json:"count"`
	Growing bool   `json:"growing"`
	From    int64  `json:"from"`
	To      int64  `json:"to"`
	Bytes   int64  `json:"bytes"`
	Values  uint64 `json:"values"`
}

// StoragePool is what lies under a ZFS or btrfs file system. It can be full while the file system seems to have room, and slows down as it fills.
type StoragePool struct {
	Name        string  `json:"name"`
	TotalBytes  int64   `json:"total_bytes"`
	UsedBytes   int64   `json:"used_bytes"`
	UsedPercent float64 `json:"used_percent"`
}

// StorageTier is all pairs of one tier together.
type StorageTier struct {
	// Tier is values, minutes or hours.
	Tier  string `json:"tier"`
	Pairs int    `json:"pairs"`
	Bytes int64  `json:"bytes"`
	// LimitBytes is what the tier may take; values may take the whole quota.
	LimitBytes int64 `json:"limit_bytes"`
	From       int64 `json:"from"`
	To         int64 `json:"to"`
	// Values is zero for summaries.
	Values uint64 `json:"values"`
	Pages  int64  `json:"pages"`
}

// TrialCandidate is what was measured of a codec with a size of extents. Figures are medians over the rounds, sizes are of all rounds together.
type TrialCandidate struct {
	// Codec is empty and ExtentBytes zero for the store as it is.
	Codec       string `json:"codec"`
	ExtentBytes int    `json:"extent_bytes"`
	// Ratio is how much smaller the values are than 16 bytes each.
	Ratio          float64 `json:"ratio"`
	BytesPerSample float64 `json:"bytes_per_sample"`
	// WriteCPU and WriteWall are milliseconds for writing a million values anew; zero for the store as it is.
	WriteCPU  float64 `json:"write_cpu_ms_per_million"`
	WriteWall float64 `json:"write_ms_per_million"`
	// QueryP50 and QueryP99 are milliseconds with warm caches, the cold ones with empty ones.
	QueryP50     float64 `json:"query_p50_ms"`
	QueryP99     float64 `json:"query_p99_ms"`
	QueryColdP50 float64 `json:"query_cold_p50_ms"`
	QueryColdP99 float64 `json:"query_cold_p99_ms"`
	// ProjectedRetentionDays is how far back the quota reaches, ProjectedBytes what the closed pairs of the store would take.
	ProjectedRetentionDays float64     `json:"projected_retention_days"`
	ProjectedBytes         int64       `json:"projected_bytes"`
	Spread                 TrialSpread `json:"spread"`
}

// TrialRange is the least and the greatest of what the rounds measured.
type TrialRange struct {
	Least    float64 `json:"least"`
	Greatest float64 `json:"greatest"`
}

// TrialRecommended says what to do.
type TrialRecommended struct {
	// Codec is empty when everything should stay as it is.
	Codec       string `json:"codec"`
	ExtentBytes int    `json:"extent_bytes"`
	Text        string `json:"text"`
}

// TrialReport is the result of a trial.
type TrialReport struct {
	Candidates  []TrialCandidate `json:"candidates"`
	Current     TrialCandidate   `json:"current"`
	Recommended TrialRecommended `json:"recommended"`
	Rounds      int              `json:"rounds"`
	// SamplePairs of Pairs closed ones were tried, SampleBytes of Bytes; a pair in several rounds counts once.
	Pairs       int   `json:"pairs"`
	Bytes       int64 `json:"bytes"`
	SamplePairs int   `json:"sample_pairs"`
	SampleBytes int64 `json:"sample_bytes"`
	// Queries is how many were replayed in each round; QueriesMade that they were made up, for want of a log.
	Queries     int  `json:"queries"`
	QueriesMade bool `json:"queries_made_up"`
	// QuotaBytes is what the days of retention are of.
	QuotaBytes int64 `json:"quota_bytes"`
}

// TrialSpread is how far the rounds lie apart.
type TrialSpread struct {
	Ratio        TrialRange `json:"ratio"`
	WriteCPU     TrialRange `json:"write_cpu_ms_per_million"`
	WriteWall    TrialRange `json:"write_ms_per_million"`
	QueryP50     TrialRange `json:"query_p50_ms"`
	QueryP99     TrialRange `json:"query_p99_ms"`
	QueryColdP50 TrialRange `json:"query_cold_p50_ms"`
	QueryColdP99 TrialRange `json:"query_cold_p99_ms"`
}
