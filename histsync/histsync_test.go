package histsync

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"tidemark/model"
)

var errEnd = errors.New("end")

type fakeSource struct {
	batches []*model.Batch
	done    atomic.Int64
}

func (f *fakeSource) Take(context.Context) (*model.Batch, int, error) {
	if len(f.batches) == 0 {
		return nil, 0, errEnd
	}
	b := f.batches[0]
	f.batches = f.batches[1:]
	return b, 1, nil
}

func (f *fakeSource) Done(n int) { f.done.Add(int64(n)) }

// fakeEngine refuses the batch whose number is full.
type fakeEngine struct {
	n, full int
}

func (f *fakeEngine) Append(_ context.Context, b *model.Batch) (model.LSN, error) {
	f.n++
	if f.n == f.full {
		return 0, errors.New("full")
	}
	b.Finish(nil)
	return model.LSN(f.n), nil
}

type fakeEvaluator struct {
	fail int
	lsns []model.LSN
}

func (f *fakeEvaluator) Evaluate(_ context.Context, lsn model.LSN, _ *model.Batch) error {
	f.lsns = append(f.lsns, lsn)
	if f.fail > 0 {
		f.fail--
		return errors.New("database is locked")
	}
	return nil
}

func TestSyncBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &fakeSource{}
		var done []*model.Completion
		for i := range 4 {
			b := model.NewBatch()
			b.AppendUint(1, int64(i), uint64(i))
			c := model.NewCompletion()
			b.Done = append(b.Done, c)
			done = append(done, c)
			source.batches = append(source.batches, b)
		}
		evaluator := &fakeEvaluator{fail: 2}
		s := New(Options{Source: source, History: &fakeEngine{full: 2}, Evaluator: evaluator, EndOfInput: errEnd})
		if err := s.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i, c := range done {
			<-c.Done()
			if (c.Err() != nil) != (i == 1) {
				t.Errorf("completion %d ended with %v; only the refused batch may fail", i, c.Err())
			}
		}
		if len(evaluator.lsns) != 3 || evaluator.lsns[0] != 1 || evaluator.lsns[1] != 3 {
			t.Errorf("evaluated %v, want 1 3 4, once each in spite of errors", evaluator.lsns)
		}
		if source.done.Load() != 4 {
			t.Errorf("gave back %d batches, want 4", source.done.Load())
		}
	})
}
