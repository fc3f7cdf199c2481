package mongo

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/afpacket"
	"github.com/gopacket/gopacket/layers"
	"go.mongodb.org/mongo-driver/v2/bson"
	"tidemark/sniff/capture"
)

// The load of the live benchmark: packets and bits a second, and for how long each consumer sees it.
const (
	liveRate    = 10_000
	liveMbit    = 60
	liveSeconds = 15
)

// prototypeDevice makes the test binary the prototype, when it is set to a device.
const prototypeDevice = "TIDEMARK_TEST_MONGO_PROTOTYPE"

// BenchmarkLive replays captures over a veth pair and says what share of a core each consumer takes, and what it lost: the binary, tcpdump, and what
// one writes first, with gopacket and the driver's BSON. The share is the time that the kernel ran the consumer's threads, without their start.
func BenchmarkLive(b *testing.B) {
	makePair(b)
	var mix []*recording
	for _, name := range []string{"crud_go", "cursor_go", "node_mixed", "big_mtu1500_go"} {
		mix = append(mix, record(b, filepath.Join("../../sniff/testdata", name+".pcap")))
	}
	address := freeAddress(b, "127.0.0.1")
	for b.Loop() {
		export := run(b, tidemark, "mongo", "export", "-i", "veth1", "--port", "27117", "--listen", address)
		metric := metrics(b, address)
		sent, share := replay(b, mix, export.Process.Pid)
		<-time.After(2 * time.Second)
		fmt.Printf("%-28s %5.2f %% of a core, %s, lost %v, gaps %v\n", "tidemark mongo export", share, sent, metric("tidemark_sniff_kernel_dropped_total"), metric("tidemark_sniff_gaps_total"))
		_ = export.Process.Kill()

		dump := run(b, "tcpdump", "-i", "veth1", "-B", "8192", "-w", "/dev/null")
		<-time.After(2 * time.Second)
		sent, share = replay(b, mix, dump.Process.Pid)
		fmt.Printf("%-28s %5.2f %% of a core, %s\n", "tcpdump -w /dev/null", share, sent)
		_ = dump.Process.Kill()

		b.Setenv(prototypeDevice, "veth1")
		prototype := run(b, os.Args[0])
		<-time.After(2 * time.Second)
		sent, share = replay(b, mix, prototype.Process.Pid)
		fmt.Printf("%-28s %5.2f %% of a core, %s\n", "gopacket and BSON prototype", share, sent)
		_ = prototype.Process.Kill()
	}
}

// replay sends at the rate and returns what went, and the share of a core that the process took meanwhile, in per cent.
func replay(b *testing.B, mix []*recording, pid int) (sent string, share float64) {
	out := newSender(b, "veth0")
	var frames, bytes, round int
	used, began := processNanos(b, pid), time.Now()
	for time.Since(began) < liveSeconds*time.Second {
		// The recording that brings the mean size of a frame closest to what is wanted.
		const wanted = liveMbit * 1_000_000 / 8 / liveRate
		best := mix[0]
		for _, r := range mix {
			off := func(r *recording) int {
				return max(bytes+r.bytes-wanted*(frames+len(r.frames)), wanted*(frames+len(r.frames))-bytes-r.bytes)
			}
			if off(r) < off(best) {
				best = r
			}
		}
		for i, f := range best.frames {
			for behind := time.Duration(frames) * time.Second / liveRate; time.Since(began) < behind; {
				<-time.After(min(time.Millisecond, behind-time.Since(began)))
			}
			setClientPort(f, uint16(1024+(round*maxClients+best.clients[i])%(26_000-maxClients)))
			out.send(b, f)
			frames++
		}
		bytes += best.bytes
		round++
	}
	took := time.Since(began)
	return fmt.Sprintf("%d packets/s, %.0f Mbit/s", int(float64(frames)/took.Seconds()), float64(bytes)*8/1e6/took.Seconds()), float64(processNanos(b, pid)-used) / float64(took) * 100
}

// maxClients bounds the connections of one recording.
const maxClients = 16

// clientPort is where the client's port stands in a frame; false when the frame is too short.
func clientPort(f []byte) ([]byte, bool) {
	const ports = ethernetBytes + ipBytes
	if len(f) < ports+4 {
		return nil, false
	}
	if binary.BigEndian.Uint16(f[ports:]) == 27117 {
		return f[ports+2:], true
	}
	return f[ports:], true
}

// setClientPort makes the frame one of another connection.
func setClientPort(f []byte, port uint16) {
	if at, ok := clientPort(f); ok {
		binary.BigEndian.PutUint16(at, port)
	}
}

// processNanos is how long the threads of a process have run, in user and kernel mode (Documentation/scheduler/sched-stats.rst).
func processNanos(b *testing.B, pid int) (nanos int64) {
	b.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(threads) == 0 {
		b.Fatalf("the consumer ended: %v", err)
	}
	for _, thread := range threads {
		text, err := os.ReadFile(thread)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		n, err := strconv.ParseInt(strings.Fields(string(text) + " 0")[0], 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		nanos += n
	}
	return nanos
}

// runPrototype is what one writes first: gopacket's packets, maps of the driver's BSON, requests waiting by their id. It counts and prints nothing.
func runPrototype(device string) (int, error) {
	ring, err := afpacket.NewTPacket(afpacket.OptInterface(device), afpacket.OptFrameSize(1<<16), afpacket.OptBlockSize(1<<20), afpacket.OptNumBlocks(16))
	if err != nil {
		return 1, err
	}
	defer ring.Close()
	end := make(chan os.Signal, 1)
	signal.Notify(end, os.Interrupt)
	go func() {
		<-end
		_, stats, err := ring.SocketStats()
		fmt.Fprintf(os.Stderr, "%d packets dropped by kernel %v\n", stats.Drops(), err)
		os.Exit(0)
	}()
	waiting, totals := map[int32]string{}, map[string]int{}
	for {
		data, _, err := ring.ReadPacketData()
		if err != nil {
			return 1, err
		}
		tcp, ok := gopacket.NewPacket(data, layers.LayerTypeEthernet, gopacket.Default).Layer(layers.LayerTypeTCP).(*layers.TCP)
		if !ok || len(tcp.Payload) < 26 || binary.LittleEndian.Uint32(tcp.Payload[12:]) != 2013 {
			continue
		}
		var command bson.M
		if bson.Unmarshal(tcp.Payload[21:], &command) != nil {
			continue
		}
		if answers := int32(binary.LittleEndian.Uint32(tcp.Payload[8:])); tcp.SrcPort == 27117 {
			totals[waiting[answers]]++
			delete(waiting, answers)
			continue
		}
		text, err := bson.MarshalExtJSON(command, false, false)
		if err == nil {
			waiting[int32(binary.LittleEndian.Uint32(tcp.Payload[4:]))] = string(text[:min(len(text), 40)])
		}
	}
}

// recording is the frames of a capture file, to be sent again and again with other client ports.
type recording struct {
	frames [][]byte
	// clients are the numbers of the frames' connections.
	clients []int
	bytes   int
}

func record(t testing.TB, path string) *recording {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	source, err := capture.NewFile(file)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	r, numbers := &recording{}, map[uint16]int{}
	var f capture.Frame
	for {
		err := source.Next(&f)
		if err == io.EOF {
			return r
		}
		if err != nil {
			t.Fatal(err)
		}
		r.frames = append(r.frames, append([]byte(nil), f.Data...))
		r.bytes += len(f.Data)
		number := 0
		if at, ok := clientPort(f.Data); ok {
			port := binary.BigEndian.Uint16(at)
			if _, known := numbers[port]; !known {
				numbers[port] = len(numbers)
			}
			if number = numbers[port]; number >= maxClients {
				t.Fatalf("%s has more than %d connections", path, maxClients)
			}
		}
		r.clients = append(r.clients, number)
	}
}
