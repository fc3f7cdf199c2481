package standby

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"tidemark/model"
)

// Times of the comparison with the primary.
const (
	// verifyFirst is when it is first made, verifyEvery how often from then on.
	verifyFirst = time.Minute
	verifyEvery = time.Hour
	// verifySettled is how old the newest compared value is: younger ones are on their way.
	verifySettled = time.Minute
	// verifyRounds is how often two that differ are compared again: late values may come in between.
	verifyRounds = 3
)

// verifyAll compares the values of the last hour with the primary's from time to time.
func (f *Follower) verifyAll(ctx context.Context) error {
	for wait := verifyFirst; ; wait = verifyEvery {
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
		to := time.Now().Add(-verifySettled)
		if err := f.Verify(ctx, model.TimeRange{From: to.Add(-verifyEvery).UnixNano(), To: to.UnixNano()}); err != nil && ctx.Err() == nil {
			f.o.Logger.Warn("the values could not be compared with the primary's; it is tried again in an hour", "error", err)
		}
	}
}

// Verify compares the values of a range of time with the primary's, whatever the codecs.
func (f *Follower) Verify(ctx context.Context, r model.TimeRange) error {
	var theirs struct {
		Values uint64 `json:"values"`
		Digest string `json:"digest"`
	}
	for round := range verifyRounds {
		if err := f.o.Client.call(ctx, http.MethodGet, fmt.Sprintf("/api/storage/digest?from=%d&to=%d", r.From, r.To), nil, &theirs); err != nil {
			return err
		}
		ours, err := f.o.Engine.Digest(ctx, r)
		if err != nil {
			return err
		}
		equal := ours.Values == theirs.Values && ours.String() == theirs.Digest
		if !equal && round < verifyRounds-1 {
			timer := time.NewTimer(time.Second)
			select {
			case <-ctx.Done():
				timer.Stop()
				return ctx.Err()
			case <-timer.C:
			}
			continue
		}
		f.mu.Lock()
		f.verifiedAt, f.differs = time.Now(), !equal
		f.mu.Unlock()
		if !equal {
			f.mismatches.Inc()
			f.o.Logger.Error("values differ from the primary's: remove the data folder and start again, so that everything is copied", "from", time.Unix(0, r.From), "to", time.Unix(0, r.To),
				"here", ours.Values, "there", theirs.Values)
		}
		return nil
	}
	return nil
}
