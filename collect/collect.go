// Package collect declares what every collector hands its values to. The collectors are in the folders below.
package collect

import (
	"context"
	"errors"

	"tidemark/model"
)

// ErrStopping says that values were not stored because the server stops: their sender sends them again.
var ErrStopping = errors.New("the server is stopping")

// Sink takes batches from a collector.
type Sink interface {
	// Put hands b over to the next stage. It blocks while there is no room, which is the back-pressure. After nil the
	// batch belongs to the next stage, which finishes b.Done when the values are durable; after an error it still
	// belongs to the caller.
	Put(ctx context.Context, b *model.Batch) error
}
