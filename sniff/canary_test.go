package sniff

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"golang.org/x/sys/unix"

	"tidemark/sniff/capture"
	"tidemark/sniff/packet"
	"tidemark/wire/mongo"
)

// canaryText marks every text value that is planted. It is made at run time from its mirror image, so that the mark itself is not found in
// a dump of the memory.
func canaryText() string {
	b := []byte("yranac")
	for i, j := 0, len(b)-1; i < j; i, j = i+1, j-1 {
		b[i], b[j] = b[j], b[i]
	}
	return string(b)
}

// canaryNumber is the upper half of every numeric value that is planted.
func canaryNumber() uint32 { return ^uint32(0xA5123ABC) }

// canary returns the nth value, of every kind in turn.
func canary(n int) any {
	text := fmt.Sprintf("%s-%d", canaryText(), n)
	number := uint64(canaryNumber())<<32 | uint64(n)
	oid := bson.ObjectID{}
	binary.BigEndian.PutUint64(oid[:], number)
	var wide [16]byte
	binary.LittleEndian.PutUint64(wide[8:], number)
	binary.LittleEndian.PutUint64(wide[:], number)
	switch n % 18 {
	case 0:
		return math.Float64frombits(number)
	case 1:
		return text
	case 2:
		return bson.D{{Key: "x", Value: text}}
	case 3:
		return bson.A{text, int64(number)}
	case 4:
		return bson.Binary{Subtype: byte(n % 7), Data: []byte(text)}
	case 5:
		return oid
	case 6:
		return bson.DateTime(int64(number))
	case 7:
		return bson.Regex{Pattern: text, Options: "i"}
	case 8:
		return bson.DBPointer{DB: text, Pointer: oid}
	case 9:
		return bson.JavaScript(text)
	case 10:
		return bson.Symbol(text)
	case 11:
		return bson.CodeWithScope{Code: bson.JavaScript(text), Scope: bson.D{{Key: "s", Value: text}}}
	case 12:
		return int32(canaryNumber())
	case 13:
		return bson.Timestamp{T: canaryNumber(), I: canaryNumber()}
	case 14:
		return int64(number)
	case 15:
		return bson.NewDecimal128(number, number)
	case 16:
		return "$" + text + " as text"
	default:
		return text + "." + text
	}
}

// plant builds a command around a value; n chooses the command and the place.
func plant(t testing.TB, n int) []byte {
	v := canary(n)
	db := bson.E{Key: "$db", Value: "shop"}
	q := bson.D{{Key: "a", Value: v}}
	var d bson.D
	switch n / 18 % 16 {
	case 0:
		d = bson.D{{Key: "find", Value: "users"}, {Key: "filter", Value: q}, {Key: "comment", Value: v}, {Key: "hint", Value: v}}
	case 1:
		d = bson.D{{Key: "find", Value: "users"}, {Key: "filter", Value: bson.D{{Key: "$or", Value: bson.A{q, bson.D{{Key: "b", Value: bson.D{{Key: "$in", Value: bson.A{v, 1, v}}}}}}}}}, {Key: "limit", Value: v}, {Key: "sort", Value: bson.D{{Key: "a", Value: v}}}}
	case 2:
		d = bson.D{{Key: "aggregate", Value: "users"}, {Key: "pipeline", Value: bson.A{bson.D{{Key: "$match", Value: q}}, bson.D{{Key: "$project", Value: bson.D{{Key: "b", Value: bson.D{{Key: "$literal", Value: v}}}}}}, bson.D{{Key: "$limit", Value: v}}}}}
	case 3:
		d = bson.D{{Key: "aggregate", Value: "users"}, {Key: "pipeline", Value: bson.A{bson.D{{Key: "$search", Value: bson.D{{Key: "text", Value: v}}}}, bson.D{{Key: "$unknownStage", Value: v}}}}, {Key: "let", Value: bson.D{{Key: "x", Value: v}}}}
	case 4:
		d = bson.D{{Key: "update", Value: "users"}, {Key: "updates", Value: bson.A{bson.D{{Key: "q", Value: q}, {Key: "u", Value: bson.D{{Key: "$set", Value: q}}}, {Key: "arrayFilters", Value: bson.A{q}}, {Key: "multi", Value: v}}}}}
	case 5:
		d = bson.D{{Key: "insert", Value: "users"}, {Key: "documents", Value: bson.A{q}}, {Key: "writeConcern", Value: bson.D{{Key: "w", Value: v}}}}
	case 6:
		d = bson.D{{Key: "delete", Value: "users"}, {Key: "deletes", Value: bson.A{bson.D{{Key: "q", Value: q}, {Key: "limit", Value: 1}}}}}
	case 7:
		d = bson.D{{Key: "findAndModify", Value: "users"}, {Key: "query", Value: q}, {Key: "update", Value: bson.D{{Key: "a", Value: v}}}}
	case 8:
		d = bson.D{{Key: "fooBar", Value: "users"}, {Key: "thing", Value: v}, {Key: "list", Value: bson.A{v, q}}}
	case 9:
		d = bson.D{{Key: "saslStart", Value: 1}, {Key: "payload", Value: v}}
	case 10:
		d = bson.D{{Key: "createUser", Value: canaryText()}, {Key: "pwd", Value: v}}
	case 11:
		d = bson.D{{Key: "explain", Value: bson.D{{Key: "find", Value: "users"}, {Key: "filter", Value: q}}}}
	case 12:
		d = bson.D{{Key: "count", Value: "users"}, {Key: "query", Value: q}}
	case 13:
		d = bson.D{{Key: "distinct", Value: "users"}, {Key: "key", Value: "a"}, {Key: "query", Value: q}}
	case 14:
		d = bson.D{{Key: "getMore", Value: int64(uint64(canaryNumber())<<32 | uint64(n))}, {Key: "collection", Value: "users"}}
	default:
		d = bson.D{{Key: "createIndexes", Value: "users"}, {Key: "indexes", Value: bson.A{bson.D{{Key: "key", Value: bson.D{{Key: "a", Value: 1}}}, {Key: "partialFilterExpression", Value: q}, {Key: "name", Value: v}}}}}
	}
	return msg(t, uint32(n), 0, 0, kind0(t, append(d, db)))
}

// writeCanaries plants values in 10,000 commands, in their replies and errors, and writes the frames to a file: each with its length
// in front.
func writeCanaries(t *testing.T, path string) {
	random := rand.New(rand.NewPCG(7, 8))
	w := newWire(t).open()
	for n := range 10_000 {
		w.most = 60_000
		if n%5 == 0 {
			w.most = 40 // over segments, through the buffers
		}
		m := plant(t, n)
		if n%7 == 0 {
			m = snappy(m)
		}
		if n%11 == 0 {
			m = m[:len(m)-1-random.IntN(20)] // broken
			le.PutUint32(m, uint32(len(m)))
		}
		w.send(0, m)
		reply := bson.D{{Key: "cursor", Value: bson.D{{Key: "firstBatch", Value: bson.A{bson.D{{Key: "a", Value: canary(n)}}}}, {Key: "id", Value: int64(0)}}}, {Key: "ok", Value: 1}}
		if n%3 == 0 {
			reply = bson.D{{Key: "ok", Value: 0}, {Key: "errmsg", Value: fmt.Sprint("duplicate key ", canary(n))}, {Key: "code", Value: 11000}, {Key: "keyValue", Value: bson.D{{Key: "a", Value: canary(n)}}}}
		}
		w.send(1, msg(t, uint32(n)+1<<20, uint32(n), 0, kind0(t, reply)))
		if n%13 == 0 {
			q := bson.D{{Key: "$query", Value: bson.D{{Key: "a", Value: canary(n)}}}}
			w.send(0, message(mongo.OpQuery, uint32(n)+1<<21, 0, legacy(0, "shop.users", numbers(0, 0), doc(t, q))))
		}
		if n%400 == 0 {
			list := bson.A{}
			for i := range 3000 {
				list = append(list, canary(i*18+1))
			}
			w.send(0, msg(t, uint32(n)+1<<22, 0, 0, kind0(t, bson.D{{Key: "find", Value: "users"}, {Key: "filter", Value: bson.D{{Key: "a", Value: bson.D{{Key: "$in", Value: list}}}}}, {Key: "$db", Value: "shop"}})))
		}
	}
	var file []byte
	for _, f := range w.frames {
		file = append(le.AppendUint32(file, uint32(len(f.data))), f.data...)
	}
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
}

// canaryFile is the variable that makes the test binary sniff a file of canaries and look into its own memory.
const canaryFile = "SNIFF_CANARY_FILE"

func TestMain(m *testing.M) {
	if path := os.Getenv(canaryFile); path != "" {
		if err := sniffCanaries(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// sniffCanaries sniffs the frames of a file that is mapped as the kernel's ring is, prints the report, unmaps the file, and then searches
// all memory of the process for what it sniffed.
func sniffCanaries(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		return err
	}
	frames, err := unix.Mmap(int(file.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	s, err := New(Options{Ports: []uint16{27017}})
	if err != nil {
		return err
	}
	at := int64(1_700_000_000_000_000_000)
	for b := frames; len(b) > 0; at += 1000 {
		n := int(le.Uint32(b))
		f := capture.Frame{Data: b[4 : 4+n : 4+n], WireBytes: n, Link: packet.Ethernet, At: at}
		s.Frame(&f)
		b = b[4+n:]
	}
	if err := unix.Munmap(frames); err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(s.Report()); err != nil {
		return err
	}
	fmt.Printf("%+v\n", s.Counters())
	err = searchMemory()
	runtime.KeepAlive(s)
	return err
}

// maxFragments is how many of the values may be left where nobody can overwrite them: in the processor's registers, which the Go runtime saves
// on a stack when it stops a goroutine in the middle of a copy (sixteen of 32 bytes), and the marks themselves.
const maxFragments = 40

// searchMemory searches every writable part of the process's memory for the marks.
func searchMemory() error {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return err
	}
	memory, err := os.Open("/proc/self/mem")
	if err != nil {
		return err
	}
	room, err := unix.Mmap(-1, 0, 64<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return err
	}
	text := []byte(canaryText() + "-")
	number := le.AppendUint32(nil, canaryNumber())
	for line := range strings.Lines(string(maps)) {
		var from, to uint64
		var rights string
		if _, err := fmt.Sscanf(line, "%x-%x %s", &from, &to, &rights); err != nil || !strings.HasPrefix(rights, "rw") || strings.Contains(line, "/dev/") {
			continue
		}
		for ; from < to; from += uint64(len(room)) {
			n, err := memory.ReadAt(room[:min(uint64(len(room)), to-from)], int64(from))
			if err != nil && n == 0 {
				break
			}
			for _, mark := range [][]byte{text, number} {
				if count := bytes.Count(room[:n], mark); count > maxFragments {
					at := bytes.LastIndex(room[:n], mark)
					return fmt.Errorf("%d values in memory at %s: %q", count, strings.Fields(line)[0], room[max(0, at-50):min(n, at+30)])
				}
			}
		}
	}
	return nil
}

// No value that was on the wire is in the report, in an error, or anywhere in the memory of the process afterwards, and so not in a core
// dump either.
func TestCanaries(t *testing.T) {
	path := filepath.Join(t.TempDir(), "frames")
	writeCanaries(t, path)
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), canaryFile+"="+path)
	var failure strings.Builder
	c.Stderr = &failure
	out, err := c.Output()
	if err != nil {
		t.Errorf("%v: %s", err, failure.String())
	}
	var r Report
	if err := json.NewDecoder(bytes.NewReader(out)).Decode(&r); err != nil {
		t.Fatal(err)
	}
	if len(r.Shapes) < 20 || len(r.Commands) < 10 {
		t.Fatalf("only %d shapes and %d commands; they were not read", len(r.Shapes), len(r.Commands))
	}
	text := strings.ToLower(string(out))
	for _, c := range []string{canaryText(), fmt.Sprint(canaryNumber()), fmt.Sprint(int32(canaryNumber())), fmt.Sprintf("%08x", canaryNumber())} {
		if at := strings.Index(text, c); at >= 0 {
			t.Errorf("a value is in the report: …%s…", text[max(0, at-100):min(len(text), at+60)])
		}
	}
}

// The memory for 2,000 shapes and 10,000 connections stays within the bounds that were promised.
func TestMemory(t *testing.T) {
	before := heap()
	s, err := New(Options{Ports: []uint16{27017}})
	if err != nil {
		t.Fatal(err)
	}
	var live *wire
	for i := range 10_000 {
		w := newWire(t)
		w.client, w.clientPort = [4]byte{10, 1, byte(i >> 8), byte(i)}, uint16(20000+i)
		w.sequence = [2]uint32{uint32(i) * 7777, uint32(i) * 3333}
		w.open()
		w.ask(1, bson.D{{Key: "hello", Value: 1}, {Key: "client", Value: bson.D{{Key: "application", Value: bson.D{{Key: "name", Value: fmt.Sprint("app", i%50)}}}}}, {Key: "$db", Value: "admin"}}, ok)
		w.send(0, msg(t, 2, 0, 0, kind0(t, find("users", bson.D{{Key: "k" + letters(i%2500), Value: 1}, {Key: "other", Value: i}}))))
		for _, f := range w.frames {
			d := decoded(f)
			s.Frame(&d)
		}
		live = w
	}
	c := s.Counters()
	if c.Flows != 10_000 || c.Shapes != 2000 || c.ShapeOverflow == 0 {
		t.Errorf("flows %d, shapes %d, overflow %d", c.Flows, c.Shapes, c.ShapeOverflow)
	}
	live.frames = nil
	if used := heap() - before; used > 40<<20 {
		t.Errorf("%d MiB of heap; with the ring of 16 MiB the promise is 64", used>>20)
	} else {
		t.Logf("%d KiB of heap", used>>10)
	}
	runtime.KeepAlive(s)
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// letters writes a number with letters only.
func letters(n int) string {
	b := []byte{}
	for range 4 {
		b = append(b, byte('g'+n%20))
		n /= 20
	}
	return string(b)
}
