package mongo

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"golang.org/x/sys/unix"
)

// sender puts frames on a device, as they are.
type sender struct{ fd int }

func newSender(t testing.TB, device string) *sender {
	t.Helper()
	i, err := net.InterfaceByName(device)
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: i.Index}); err != nil {
		t.Fatal(err)
	}
	return &sender{fd}
}

// send waits while the device's queue is full.
func (s *sender) send(t testing.TB, frame []byte) {
	for {
		_, err := unix.Write(s.fd, frame)
		if err == unix.ENOBUFS || err == unix.EAGAIN {
			<-time.After(100 * time.Microsecond)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
}

const (
	ethernetBytes = 14
	ipBytes       = 20
	tcpBytes      = 20
	serverPort    = 27017
)

// frame makes an Ethernet frame with a TCP segment between a client, by its number, and the server. Nobody verifies checksums.
func frame(client int, toServer bool, sequence uint32, payload []byte) []byte {
	b := make([]byte, ethernetBytes+ipBytes+tcpBytes, ethernetBytes+ipBytes+tcpBytes+len(payload))
	binary.BigEndian.PutUint16(b[12:], 0x0800)
	ip, tcp := b[ethernetBytes:], b[ethernetBytes+ipBytes:]
	ip[0], ip[8], ip[9] = 0x45, 64, unix.IPPROTO_TCP
	binary.BigEndian.PutUint16(ip[2:], uint16(ipBytes+tcpBytes+len(payload)))
	source, destination := uint32(10)<<24|uint32(client/20_000+1), uint32(10)<<24|2<<16
	from, to := uint16(20_000+client%20_000), uint16(serverPort)
	if !toServer {
		source, destination, from, to = destination, source, to, from
	}
	binary.BigEndian.PutUint32(ip[12:], source)
	binary.BigEndian.PutUint32(ip[16:], destination)
	binary.BigEndian.PutUint16(tcp, from)
	binary.BigEndian.PutUint16(tcp[2:], to)
	binary.BigEndian.PutUint32(tcp[4:], sequence)
	tcp[12], tcp[13] = tcpBytes/4<<4, 0x10 // ACK
	return append(b, payload...)
}

// message makes an OP_MSG.
func message(t testing.TB, id, answers uint32, document bson.D) []byte {
	t.Helper()
	raw, err := bson.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 21, 21+len(raw))
	b = append(b, raw...)
	binary.LittleEndian.PutUint32(b, uint32(len(b)))
	binary.LittleEndian.PutUint32(b[4:], id)
	binary.LittleEndian.PutUint32(b[8:], answers)
	binary.LittleEndian.PutUint32(b[12:], 2013)
	return b
}

// resident is the resident memory of a process, in bytes.
func resident(t testing.TB, pid int) uint64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	var size, pages uint64
	if err == nil {
		_, err = fmt.Sscan(string(text), &size, &pages)
	}
	if err != nil {
		t.Fatal(err)
	}
	return pages * uint64(os.Getpagesize())
}

// TestResident bounds the memory of the binary while it follows 10,000 connections and keeps 2,000 shapes, over several waves of other shapes.
func TestResident(t *testing.T) {
	const connections, shapes, waves, limit = 10_000, 2000, 4, 64 << 20
	address := freeAddress(t, "127.0.0.1")
	cmd := run(t, tidemark, "mongo", "export", "-i", "lo", "--listen", address)
	metric := metrics(t, address)
	out := newSender(t, "lo")
	answer := bson.D{{Key: "cursor", Value: bson.D{{Key: "id", Value: int64(0)}, {Key: "ns", Value: "a.b"}, {Key: "firstBatch", Value: bson.A{}}}}, {Key: "ok", Value: 1.0}}
	var sequences [connections][2]uint32
	for wave := range waves {
		for i := range connections {
			id := uint32(i + 1)
			request := message(t, id, 0, bson.D{
				{Key: "find", Value: fmt.Sprint("c", i%50)},
				{Key: "filter", Value: bson.D{{Key: fmt.Sprintf("field_%d_%d", wave, i%shapes), Value: i}, {Key: "status", Value: "new"}}},
				{Key: "sort", Value: bson.D{{Key: "created", Value: -1}}},
				{Key: "limit", Value: 10},
				{Key: "$db", Value: "shop"},
			})
			reply := message(t, id+1, id, answer)
			at := &sequences[i]
			out.send(t, frame(i, true, at[0], request))
			out.send(t, frame(i, false, at[1], reply))
			at[0] += uint32(len(request))
			at[1] += uint32(len(reply))
			if i%200 == 0 {
				<-time.After(2 * time.Millisecond) // About 100,000 frames a second at most.
			}
		}
		eventually(t, "the wave is counted", func() bool {
			return metric(`tidemark_mongo_server_requests_total\{[^}]*kind="load"\}`)+metric(`tidemark_sniff_kernel_dropped_total`) >= float64((wave+1)*connections)
		})
		flows, kept := metric("tidemark_sniff_flows"), metric("tidemark_sniff_shapes")
		if rss := resident(t, cmd.Process.Pid); rss > limit {
			t.Errorf("wave %d: %d MiB are resident with %v connections and %v shapes, at most %d are allowed", wave, rss>>20, flows, kept, limit>>20)
		} else {
			t.Logf("wave %d: %d MiB are resident with %v connections and %v shapes", wave, rss>>20, flows, kept)
		}
		if flows < connections || kept < shapes*0.85 {
			t.Errorf("only %v connections and %v shapes", flows, kept)
		}
	}
}

// wavesVariable is how many waves of other shapes and connections TestChurn sends; `make soak` sends those of an hour.
const wavesVariable = "TIDEMARK_MONGO_WAVES"

// TestChurn has the memory of the programs that watch grow no more once everything was full, while shapes and connections come and go faster than a
// server has them: 2,000 other shapes and 500 other connections in each wave, of which there is about one a second.
func TestChurn(t *testing.T) {
	const connections, shapes, limit, grows, full = 10_000, 2000, 64 << 20, 10 << 20, 4
	waves := 12
	if text := os.Getenv(wavesVariable); text != "" {
		var err error
		if waves, err = strconv.Atoi(text); err != nil || waves < 2*full {
			t.Fatalf("%s is %q, expected %d or more", wavesVariable, text, 2*full)
		}
	}
	address := freeAddress(t, "127.0.0.1")
	programs := map[string]*exec.Cmd{
		"mongo export": run(t, tidemark, "mongo", "export", "-i", "lo", "--listen", address),
		"mongo top":    run(t, tidemark, "mongo", "top", "-i", "lo", "--once", "--seconds", "36000"),
		"agent":        run(t, tidemark, "agent", "--server", freeAddress(t, "127.0.0.1"), "--host", "db1", "--mongo", "lo", "--data", t.TempDir()),
	}
	metric := metrics(t, address)
	out := newSender(t, "lo")
	state := make(waveState, connections)
	settled, most := map[string]uint64{}, map[string]uint64{}
	for wave := range waves {
		state.send(t, out, wave, shapes)
		eventually(t, "the wave is counted", func() bool {
			return metric(`tidemark_mongo_server_requests_total\{[^}]*kind="load"\}`)+metric(`tidemark_sniff_kernel_dropped_total`) >= float64((wave+1)*connections)
		})
		if flows := metric("tidemark_sniff_flows") + metric("tidemark_sniff_kernel_dropped_total"); flows < connections {
			t.Errorf("wave %d: only %v connections", wave, flows)
		}
		for name, cmd := range programs {
			rss := resident(t, cmd.Process.Pid)
			most[name] = max(most[name], rss)
			if wave < waves/2 {
				settled[name] = max(settled[name], rss)
			}
			if rss > limit {
				t.Errorf("wave %d: %s has %d MiB resident, at most %d are allowed", wave, name, rss>>20, limit>>20)
			}
			if rss > settled[name]+grows {
				t.Errorf("wave %d: %s has %d MiB resident, in the first half it had %d at most", wave, name, rss>>20, settled[name]>>20)
			}
			if wave%max(waves/8, 1) == 0 || wave == waves-1 {
				t.Logf("wave %d: %s has %d MiB resident", wave, name, rss>>20)
			}
		}
	}
	t.Logf("%d waves; at most %v bytes resident, in the first half %v", waves, most, settled)
}

// waveState is where the connections stand, by their place in the wave: the bytes that each side sent.
type waveState [][2]uint32

// send sends a request and a reply on each connection. Each wave has shapes of its own; a twentieth of its connections are new, and as many
// of the oldest close; the ends of every second wave are not captured.
func (w waveState) send(t *testing.T, out *sender, wave, shapes int) {
	t.Helper()
	answer := bson.D{{Key: "cursor", Value: bson.D{{Key: "id", Value: int64(0)}, {Key: "ns", Value: "a.b"}, {Key: "firstBatch", Value: bson.A{}}}}, {Key: "ok", Value: 1.0}}
	fresh := len(w) / 20
	if wave > 0 {
		copy(w, w[fresh:])
		clear(w[len(w)-fresh:])
	}
	for i := range w {
		id := uint32(i + 1)
		request := message(t, id, 0, bson.D{
			{Key: "find", Value: fmt.Sprint("c", i%50)},
			{Key: "filter", Value: bson.D{{Key: fmt.Sprintf("field_%d_%d", wave, i%shapes), Value: i}, {Key: "status", Value: "new"}}},
			{Key: "sort", Value: bson.D{{Key: "created", Value: -1}}},
			{Key: "limit", Value: 10},
			{Key: "$db", Value: "shop"},
		})
		reply := message(t, id+1, id, answer)
		connection, at := wave*fresh+i, &w[i]
		out.send(t, frame(connection, true, at[0], request))
		out.send(t, frame(connection, false, at[1], reply))
		at[0] += uint32(len(request))
		at[1] += uint32(len(reply))
		if i < fresh && wave%2 == 0 {
			out.send(t, last(frame(connection, true, at[0], nil)))
			out.send(t, last(frame(connection, false, at[1], nil)))
		}
		if i%200 == 0 {
			<-time.After(2 * time.Millisecond) // About 100,000 frames a second at most.
		}
	}
}

// last makes a frame the last one of its side.
func last(frame []byte) []byte {
	const fin = 0x01
	frame[ethernetBytes+ipBytes+13] |= fin
	return frame
}
