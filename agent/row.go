package agent

import (
	"tidemark/agent/key"
	"tidemark/wire/zbx"
)

// item is what a row says of itself to the server. It is never changed once rows point to it.
type item struct {
	key string
	// id is the server's number for the item; zero for declared items and for servers before 4.4.
	id uint64
	// delay is the interval that the server asked for.
	delay string
	// declaration makes the item known to a Tidemark server; nil for items that the server asked for.
	declaration *zbx.Declaration
}

// row is one value on its way to the server.
type row struct {
	// id rises within the session; the server drops what it had before.
	id   uint64
	at   int64 // Unix nanoseconds
	item *item
	// value is the reason when unsupported is set.
	value       key.Value
	unsupported bool
}

// rowOverheadBytes is what a row takes in a request besides its text.
const rowOverheadBytes = 160

func (r *row) sizeBytes() int { return rowOverheadBytes + len(r.item.key) + len(r.value.Text) }
