package mongo

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The search for the highest rate: where it begins, how long a rate is held, and how near the answer is to the truth.
const (
	lowestRate  = 20_000
	rateSeconds = 3
	rateStep    = 1.25
	// rateTries is how often a rate may lose packets before it counts as too high: a shared machine stops any program now and then.
	rateTries = 3
)

// BenchmarkHighest finds the highest rate of packets that each consumer takes on one core for three seconds without the kernel dropping one: the
// binary, tcpdump and the prototype of BenchmarkLive, one after the other. The sender has the other core; where it is the slower one, the
// rate that it reached is a lower bound and says so.
func BenchmarkHighest(b *testing.B) {
	makePair(b)
	frames := mixedFrames(b)
	consumers := []struct {
		name  string
		drops func(b *testing.B, rate int) (int, float64)
	}{
		{"tidemark mongo export", func(b *testing.B, rate int) (int, float64) {
			address := freeAddress(b, "127.0.0.1")
			cmd := run(b, "taskset", "-c", "1", tidemark, "mongo", "export", "-i", "veth1", "--port", "27117", "--listen", address)
			metric := metrics(b, address)
			sent := flood(b, frames, rate)
			<-time.After(time.Second)
			drops := int(metric("tidemark_sniff_kernel_dropped_total"))
			stop(b, cmd)
			return drops, sent
		}},
		{"tcpdump -w /dev/null", func(b *testing.B, rate int) (int, float64) {
			return interrupted(b, exec.Command("taskset", "-c", "1", "tcpdump", "-i", "veth1", "-B", "8192", "-w", "/dev/null"), frames, rate)
		}},
		{"gopacket and BSON prototype", func(b *testing.B, rate int) (int, float64) {
			cmd := exec.Command("taskset", "-c", "1", os.Args[0])
			cmd.Env = append(os.Environ(), prototypeDevice+"=veth1")
			return interrupted(b, cmd, frames, rate)
		}},
	}
	for b.Loop() {
		for _, c := range consumers {
			rate, bound := highest(b, c.drops)
			note := ""
			if bound {
				note = ", the sender's limit: no drops"
			}
			fmt.Printf("%-28s %8.0f packets/s on one core without drops%s\n", c.name, rate, note)
		}
	}
}

// highest climbs until packets are dropped or the sender comes no further; bound says that it was the sender.
func highest(b *testing.B, drops func(*testing.B, int) (int, float64)) (best float64, bound bool) {
	for rate := float64(lowestRate); ; rate *= rateStep {
		held := false
		bound = true
		for range rateTries {
			lost, sent := drops(b, int(rate))
			if lost > 0 {
				bound = false
				continue
			}
			best = max(best, sent)
			if held = sent > rate*0.97; held {
				break
			}
		}
		if !held {
			return best, bound
		}
	}
}

// dropped finds what tcpdump and the prototype say at their end.
var dropped = regexp.MustCompile(`(\d+) packets dropped by kernel`)

// interrupted runs a consumer that tells its drops when it is interrupted.
func interrupted(b *testing.B, cmd *exec.Cmd, frames [][]byte, rate int) (int, float64) {
	var out strings.Builder
	cmd.Stderr = &out
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	<-time.After(time.Second)
	sent := flood(b, frames, rate)
	<-time.After(time.Second)
	stop(b, cmd)
	said := dropped.FindStringSubmatch(out.String())
	if said == nil {
		b.Fatalf("%s did not say its drops: %s", cmd, out.String())
	}
	n, err := strconv.Atoi(said[1])
	if err != nil {
		b.Fatal(err)
	}
	return n, sent
}

// stop interrupts a program and waits for its end.
func stop(b *testing.B, cmd *exec.Cmd) {
	if err := cmd.Process.Signal(unix.SIGINT); err != nil {
		b.Fatal(err)
	}
	_ = cmd.Wait()
}

// makePair makes veth0 and veth1, which take frames of up to 64 KiB as captures of loopback have them.
func makePair(b *testing.B) {
	if out, err := exec.Command("ip", "link", "add", "veth0", "type", "veth", "peer", "name", "veth1").CombinedOutput(); err != nil {
		b.Fatalf("make a veth pair: %v\n%s", err, out)
	}
	b.Cleanup(func() { _ = exec.Command("ip", "link", "del", "veth0").Run() })
	for _, name := range []string{"veth0", "veth1"} {
		if err := raise(name); err != nil {
			b.Fatal(err)
		}
		if out, err := exec.Command("ip", "link", "set", name, "mtu", "65000").CombinedOutput(); err != nil {
			b.Fatalf("%v\n%s", err, out)
		}
	}
}

// mixedFrames are the frames of the captures with small messages, each on 64 groups of connections, so that sequence numbers seldom begin anew.
func mixedFrames(b *testing.B) (frames [][]byte) {
	for group := range 64 {
		for _, name := range []string{"crud_go", "cursor_go", "node_mixed"} {
			r := record(b, filepath.Join("../../sniff/testdata", name+".pcap"))
			for i, f := range r.frames {
				setClientPort(f, uint16(1024+group*maxClients+r.clients[i]))
				frames = append(frames, f)
			}
		}
	}
	return frames
}

// burst is how many frames go to the kernel at once.
const burst = 64

// messageHeader is struct mmsghdr (sendmmsg(2)).
type messageHeader struct {
	header unix.Msghdr
	sent   uint32
	_      [4]byte
}

// flood sends the frames again and again at a rate of packets a second, and returns the rate that it reached.
func flood(b *testing.B, frames [][]byte, rate int) float64 {
	fd := rawSocket(b, "veth0")
	defer unix.Close(fd)
	var headers [burst]messageHeader
	var vectors [burst]unix.Iovec
	began, sent, at := time.Now(), 0, 0
	for time.Since(began) < rateSeconds*time.Second {
		if ahead := time.Duration(float64(sent)/float64(rate)*1e9) - time.Since(began); ahead > 0 {
			if ahead > 200*time.Microsecond {
				time.Sleep(ahead / 2)
			}
			continue
		}
		for i := range burst {
			f := frames[at]
			vectors[i].Base = &f[0]
			vectors[i].SetLen(len(f))
			headers[i].header.Iov = &vectors[i]
			headers[i].header.SetIovlen(1)
			at = (at + 1) % len(frames)
		}
		n, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(&headers[0])), burst, 0, 0, 0)
		if errno != 0 && errno != unix.ENOBUFS && errno != unix.EAGAIN {
			b.Fatalf("send: %v", errno)
		}
		if errno == 0 {
			sent += int(n)
		}
	}
	return float64(sent) / time.Since(began).Seconds()
}

// rawSocket sends on a device past its queue.
func rawSocket(b *testing.B, device string) int {
	i, err := net.InterfaceByName(device)
	if err != nil {
		b.Fatal(err)
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		b.Fatal(err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_QDISC_BYPASS, 1); err != nil {
		b.Fatal(err)
	}
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: i.Index}); err != nil {
		b.Fatal(err)
	}
	return fd
}
