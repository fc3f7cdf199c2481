package sniff

// Losses are the counters that tell how much of the traffic was not seen or not understood. Duplicates and encrypted connections are no
// loss, but explain what a table does not show.
type Losses struct {
	KernelDrops       uint64 `json:"kernel_drops"`
	KernelFreezes     uint64 `json:"kernel_freezes"`
	Gaps              uint64 `json:"gaps"`
	UnmatchedRequests uint64 `json:"unmatched_requests"`
	UnmatchedReplies  uint64 `json:"unmatched_replies"`
	Unread            uint64 `json:"unread"`
	ShapeOverflow     uint64 `json:"shape_overflow"`
	Duplicates        uint64 `json:"duplicates"`
	EncryptedFlows    uint64 `json:"encrypted_flows"`
}

// Losses sums the counters up.
func (c *Counters) Losses() Losses {
	l := Losses{
		KernelDrops: c.Source.Dropped, KernelFreezes: c.Source.Freezes, Gaps: c.Flow.Gaps, UnmatchedRequests: c.Pair.UnmatchedRequests,
		UnmatchedReplies: c.Pair.UnmatchedReplies, ShapeOverflow: c.ShapeOverflow, Duplicates: c.Flow.Duplicates, EncryptedFlows: c.Flow.Encrypted,
	}
	for _, n := range c.Malformed() {
		l.Unread += n
	}
	return l
}
