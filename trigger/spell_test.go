package trigger

import (
	"testing"

	"tidemark/model"
)

// TestEvaluate_spells has an item turn unsupported and back several times within one batch: each row of another item is
// evaluated as of its own time, as if every row had come alone.
func TestEvaluate_spells(t *testing.T) {
	for _, alone := range []bool{true, false} {
		r := newRig(t)
		r.apply(model.Trigger{Expression: "last(/h/f)>10 and last(/h/u)>10"})
		b := model.NewBatch()
		next := func() {
			if alone {
				r.send(b)
				b = model.NewBatch()
			}
		}
		float := func(at int64, v float64) { b.AppendFloat(1, at*second, v); next() }
		uint := func(at int64, v uint64) { b.AppendUint(2, at*second, v); next() }
		unsupported := func(at int64) { b.AppendBytes(1, at*second, model.Unsupported, []byte("broken")); next() }
		uint(1, 5)
		float(1, 20)
		unsupported(2)
		unsupported(3)
		uint(4, 20) // unknown and true
		float(5, 20)
		unsupported(6)
		uint(7, 5) // unknown and false
		float(8, 20)
		uint(9, 20)
		unsupported(10)
		uint(11, 30)
		float(12, 1)
		unsupported(13)
		if !alone {
			r.send(b)
		}
		r.want("1@5 problem", "1@7 ok", "1@9 problem", "1@12 ok")
	}
}
