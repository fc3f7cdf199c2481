package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"tidemark/sniff"
	"tidemark/sniff/capture"
)

// mongoSource are the flags that say what to watch.
type mongoSource struct {
	device, file string
	ports        []string
	ringMiB      int
	shapes       int
}

func (m *mongoSource) add(c *cobra.Command, files bool) {
	c.Flags().StringVarP(&m.device, "interface", "i", "", "network interface to watch, or any")
	if files {
		c.Flags().StringVar(&m.file, "pcap", "", "capture file to replay instead, pcap or pcapng")
	}
	c.Flags().StringArrayVar(&m.ports, "port", nil, "port of a MongoDB server; may be given several times (default 27017; of a file: found by content)")
	m.ringMiB, m.shapes = 8, 2000
	intFlag(c.Flags(), &m.ringMiB, "ring", 0, 1024, "size of the capture ring in MiB")
	intFlag(c.Flags(), &m.shapes, "shapes", 0, 1_000_000, "how many shapes are told apart; the least loaded make room")
}

// watch is an open source with its sniffer.
type watch struct {
	source  capture.Source
	sniffer *sniff.Sniffer
	now     func() int64
	// name is what is watched, for people.
	name string
	live bool
}

// garbagePercent keeps the memory of a process that only watches close to what it needs: it allocates next to nothing for a packet, so that collecting
// garbage often costs little.
const garbagePercent = 20

// agentGarbagePercent is less, because an agent keeps items of its host too, and an item for each quantity of a shape.
const agentGarbagePercent = 10

// staySmallEvery is how often a process that watches looks after its memory, in seconds.
const staySmallEvery = 5

// run watches until the context or the source ends and calls tick once a second.
func (w *watch) run(ctx context.Context, tick func(from, to int64)) error {
	ticks := 0
	return w.sniffer.Run(ctx, w.source, sniff.RunOptions{Now: w.now, Tick: func(from, to int64) {
		if ticks++; ticks%staySmallEvery == 0 {
			staySmall()
		}
		tick(from, to)
	}})
}

// open opens the source. After a network interface was opened, every privilege is dropped; what could not be dropped is said on stderr.
func (m *mongoSource) open(paced bool, stderr io.Writer) (*watch, error) {
	if (m.device == "") == (m.file == "") {
		return nil, usagef("name what to watch: -i INTERFACE, or --pcap FILE")
	}
	ports, err := parsePorts(m.ports)
	if err != nil {
		return nil, err
	}
	if m.device != "" && len(ports) == 0 {
		ports = []uint16{27017}
	}
	debug.SetGCPercent(garbagePercent)
	dropUnusedPages()
	w := &watch{}
	if w.sniffer, err = sniff.New(sniff.Options{Ports: ports, Shapes: m.shapes}); err != nil {
		return nil, err
	}
	if m.device != "" {
		return w, m.openDevice(w, ports, stderr)
	}
	file, err := os.Open(m.file)
	if err != nil {
		return nil, err
	}
	source, err := capture.NewFile(file)
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("%s: %w", m.file, err)
	}
	w.source, w.name = source, m.file
	if paced {
		p := &pacedSource{Source: source}
		w.source, w.now = p, p.clock
	}
	return w, nil
}

func (m *mongoSource) openDevice(w *watch, ports []uint16, stderr io.Writer) error {
	ring, err := capture.OpenRing(capture.RingOptions{Interface: m.device, Ports: ports, RingBytes: m.ringMiB << 20})
	if err != nil {
		return err
	}
	w.source, w.name, w.live = ring, fmt.Sprintf("%s port %s", m.device, portList(ports)), true
	switch err := capture.DropPrivileges(); {
	case errors.Is(err, unix.ENOTSUP):
		fmt.Fprintln(stderr, "tidemark: privileges are kept: this binary was built with cgo, which cannot drop them in all threads")
	case err != nil:
		ring.Close()
		return err
	}
	return nil
}

func portList(ports []uint16) string {
	text := ""
	for i, p := range ports {
		if i > 0 {
			text += ","
		}
		text += fmt.Sprint(p)
	}
	return text
}

// pacedSource gives the frames of a file at the speed at which they were captured.
type pacedSource struct {
	capture.Source
	frame   capture.Frame
	waiting bool
	first   int64 // capture time of the first frame
	began   time.Time
}

// clock is the capture time that has been reached.
func (p *pacedSource) clock() int64 { return p.first + int64(time.Since(p.began)) }

// Next implements capture.Source.
func (p *pacedSource) Next(f *capture.Frame) error {
	if !p.waiting {
		if err := p.Source.Next(&p.frame); err != nil {
			return err
		}
		if p.began.IsZero() {
			p.first, p.began = p.frame.At, time.Now()
		}
		p.waiting = true
	}
	const longest = 50 * time.Millisecond
	if wait := time.Duration(p.frame.At - p.clock()); wait > longest {
		time.Sleep(longest)
		return capture.ErrTimeout
	} else if wait > 0 {
		time.Sleep(wait)
	}
	p.waiting = false
	*f = p.frame
	return nil
}
