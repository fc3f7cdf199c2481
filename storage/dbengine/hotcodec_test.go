package dbengine

import (
	"context"
	"testing"
	"time"

	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage/storagetest"
)

// TestDB_hotCodec: a codec makes what is first written smaller, and a store reads what it wrote with another one.
func TestDB_hotCodec(t *testing.T) {
	fsys := vfs.NewMem()
	var want []uint64
	write := func(codec string) int64 {
		o := smallOptions()
		o.HotCodec = everything(codec).Codec
		o.MinuteShare, o.HourShare = -1, -1
		db := openTest(t, fsys, o)
		before := db.m.writtenBytes.Get()
		for range 2000 {
			n := uint64(len(want))
			v := (n % 7) * 0x0123_4567_89AB_CDEF // repeats, which columns do not see
			b := &model.Batch{}
			b.AppendUint(1, testBase+int64(n)*int64(time.Second), v)
			want = append(want, v)
			appendWait(t, db, b)
		}
		if err := db.Flush(context.Background()); err != nil {
			t.Fatal(err)
		}
		size := int64(db.m.writtenBytes.Get() - before)
		got := storagetest.Collect(t, db, storagetest.All(1))
		if len(got) != len(want) {
			t.Fatalf("%s: %d values, expected %d", codec, len(got), len(want))
		}
		for i := range got {
			if got[i].Bits != want[i] {
				t.Fatalf("%s: value %d is %x, expected %x", codec, i, got[i].Bits, want[i])
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		return size
	}
	none := write("none")
	for _, codec := range []string{"lz4", "zstd:3"} {
		if size := write(codec); size > none*8/10 {
			t.Errorf("%s writes %d bytes, none %d", codec, size, none)
		}
	}
}
