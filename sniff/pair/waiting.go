package pair

// Requests that wait for their reply stand in two lists: that of their connection, by which a reply finds its request, and that of all
// connections, by which the longest waiting make room. Where replies are lost, requests wait for nothing; they must not keep those out
// that will be answered.

// take returns an empty place for a request.
func (p *Pairer) take() *pending {
	if n := len(p.free); n > 0 {
		q := p.free[n-1]
		p.free = p.free[:n-1]
		return q
	}
	return &pending{}
}

// give takes a place back.
func (p *Pairer) give(q *pending) {
	if len(p.free) < 1024 {
		*q = pending{}
		p.free = append(p.free, q)
	}
}

// wait remembers a request until its reply comes. On a full table the longest waiting makes room, on a full connection that of the
// connection.
func (p *Pairer) wait(c *connection, q *pending) {
	if c.count >= maxPending {
		last := c.pending
		for last.before != nil {
			last = last.before
		}
		p.forgo(last)
	} else if p.waiting >= maxWaiting {
		p.counters.NoRoom++
		last := p.oldest
		p.unlink(last)
		p.give(last)
	}
	q.connection, q.before, c.pending = c, c.pending, q
	c.count++
	p.waiting++
	p.append(q)
}

// append makes a request the newest on all connections.
func (p *Pairer) append(q *pending) {
	q.older, q.newer = p.newest, nil
	if p.newest != nil {
		p.newest.newer = q
	} else {
		p.oldest = q
	}
	p.newest = q
}

// detach takes a request out of the list of all connections.
func (p *Pairer) detach(q *pending) {
	if q.older != nil {
		q.older.newer = q.newer
	} else {
		p.oldest = q.newer
	}
	if q.newer != nil {
		q.newer.older = q.older
	} else {
		p.newest = q.older
	}
}

// unlink takes a request out of both lists.
func (p *Pairer) unlink(q *pending) {
	p.detach(q)
	at := &q.connection.pending
	for *at != q {
		at = &(*at).before
	}
	*at = q.before
	q.connection.count--
	p.waiting--
}

// forgo counts a request whose reply will not come, and gives up its place.
func (p *Pairer) forgo(q *pending) {
	p.unlink(q)
	if !q.further && !q.blind && !q.request.Monitoring {
		p.counters.UnmatchedRequests++
	}
	p.give(q)
}

// find returns the newest request of a connection with an id, or nil.
func (c *connection) find(id uint32) *pending {
	for q := c.pending; q != nil; q = q.before {
		if q.id == id {
			return q
		}
	}
	return nil
}
