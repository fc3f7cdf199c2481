package sniff

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"tidemark/sniff/capture"
)

// load reads a capture into memory.
func load(t testing.TB, path string) []wireFrame {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := capture.NewFile(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	var out []wireFrame
	var frame capture.Frame
	for {
		err := f.Next(&frame)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, wireFrame{data: slices.Clone(frame.Data), wire: frame.WireBytes, at: frame.At, link: frame.Link})
	}
}

func captures(t testing.TB) []string {
	t.Helper()
	names, err := filepath.Glob("testdata/*.pcap")
	if err != nil || len(names) < 10 {
		t.Fatalf("captures: %v %v", names, err)
	}
	return names
}

// lost returns how many requests a damaged capture lost against the whole one, and complains about all that it invented.
func lost(t *testing.T, what string, whole, damaged Report) (requests uint64) {
	t.Helper()
	was, is := counts(whole), counts(damaged)
	for key, n := range is {
		w, known := was[key]
		if !known {
			t.Errorf("%s: %s does not exist", what, key)
		}
		for i := range n {
			if n[i] > w[i] {
				t.Errorf("%s: %s: %v, more than the %v there are", what, key, n, w)
				break
			}
		}
	}
	for key, n := range was {
		requests += n[0] - min(is[key][0], n[0])
	}
	return requests
}

// damagesVariable is at how many bytes each capture is cut in turn; 30 unless it is set. With more than a capture has, it is every one.
const damagesVariable = "TIDEMARK_MONGO_DAMAGES"

// step samples long captures so that the test stays quick.
func step(t testing.TB, n, samples int) int {
	t.Helper()
	if text := os.Getenv(damagesVariable); text != "" {
		most, err := strconv.Atoi(text)
		if err != nil || most < 1 {
			t.Fatalf("%s is %q, expected a number", damagesVariable, text)
		}
		samples = most
	}
	return max(1, n/samples)
}

// Every packet dropped in turn: nothing is invented, the loss is small, and it is counted.
func TestDamage_dropped(t *testing.T) {
	for _, path := range captures(t) {
		frames := load(t, path)
		whole := sniffed(t, frames).Report()
		for i := range frames {
			r := sniffed(t, slices.Delete(slices.Clone(frames), i, i+1)).Report()
			if n := lost(t, filepath.Base(path), whole, r); n > 3 {
				t.Errorf("%s: without packet %d, %d requests are lost", path, i, n)
			} else if n > 0 && r.Gaps+r.Unmatched.Replies+r.Unmatched.Requests == 0 {
				t.Errorf("%s: without packet %d, %d requests are lost and no counter says so", path, i, n)
			}
		}
	}
}

// Neighbours swapped: within one direction nothing is lost; a reply before its request is unmatched.
func TestDamage_swapped(t *testing.T) {
	for _, path := range captures(t) {
		frames := load(t, path)
		whole := sniffed(t, frames).Report()
		for i := range len(frames) - 1 {
			swapped := slices.Clone(frames)
			swapped[i].data, swapped[i+1].data = frames[i+1].data, frames[i].data
			swapped[i].wire, swapped[i+1].wire = frames[i+1].wire, frames[i].wire
			if n := lost(t, filepath.Base(path), whole, sniffed(t, swapped).Report()); n > 1 {
				t.Errorf("%s: with packets %d and %d swapped, %d requests are lost", path, i, i+1, n)
			}
		}
	}
}

// Every packet twice, at once and late: the counts are the same, and the copies count as duplicates.
func TestDamage_duplicated(t *testing.T) {
	for _, path := range captures(t) {
		frames := load(t, path)
		whole := sniffed(t, frames).Report()
		for _, distance := range []int{1, 7} {
			var doubled []wireFrame
			for i, f := range frames {
				doubled = append(doubled, f)
				if j := i - distance + 1; j >= 0 {
					again := frames[j]
					again.at = f.at
					doubled = append(doubled, again)
				}
			}
			r := sniffed(t, doubled).Report()
			if n := lost(t, path, whole, r); n > 0 {
				t.Errorf("%s: %d requests lost", path, n)
			}
			if r.Duplicates <= whole.Duplicates || r.Gaps != whole.Gaps || r.Unmatched != whole.Unmatched {
				t.Errorf("%s: duplicates %d, gaps %d, unmatched %+v", path, r.Duplicates, r.Gaps, r.Unmatched)
			}
		}
	}
}

// The file cut at every byte: a report of what came before, an error about the rest.
func TestDamage_cutFile(t *testing.T) {
	for _, path := range captures(t) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		whole := report(t, path)
		for n := 24; n < len(text); n += step(t, len(text), 30) {
			f, err := capture.NewFile(bytes.NewReader(text[:n]))
			if err != nil {
				t.Fatal(err)
			}
			s, err := New(Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.ReadAll(f); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Fatalf("%s cut at %d: %v", path, n, err)
			}
			lost(t, path, whole, s.Report())
		}
	}
}

// Frames cut by a short snap length, at every length.
func TestDamage_snapped(t *testing.T) {
	for _, path := range captures(t) {
		frames := load(t, path)
		if len(frames) > 150 {
			frames = frames[:150]
		}
		whole := sniffed(t, frames).Report()
		for n := 1; n < 400; n += step(t, 400, 20) {
			snapped := slices.Clone(frames)
			for i := range snapped {
				snapped[i].data = snapped[i].data[:min(n, len(snapped[i].data))]
			}
			for _, ports := range [][]uint16{nil, {27117, 27118, 27119, 27120, 27124, 27130}} {
				r := sniffed(t, snapped, ports...).Report()
				if lost(t, path, whole, r) > 0 && r.Gaps == 0 && len(r.Malformed) == 0 && r.Flows > 0 {
					t.Errorf("%s cut to %d: requests lost and no counter says so", path, n)
				}
			}
		}
	}
}

// One direction only: requests count, and none is taken for answered.
func TestDamage_oneDirection(t *testing.T) {
	for _, path := range captures(t) {
		frames := load(t, path)
		whole := sniffed(t, frames).Report()
		for _, toServer := range []bool{true, false} {
			var half []wireFrame
			for _, f := range frames {
				if isToServer(f) == toServer {
					half = append(half, f)
				}
			}
			r := sniffed(t, half, 27117, 27118, 27119, 27120, 27124, 27130).Report()
			n := lost(t, path, whole, r)
			if toServer && n > 0 {
				t.Errorf("%s: %d requests lost though all were there", path, n)
			}
			if !toServer && len(r.Commands) > 0 {
				t.Errorf("%s: commands from replies alone: %v", path, r.Commands)
			}
		}
	}
}

func isToServer(f wireFrame) bool {
	s := &Sniffer{}
	return decodeFrame(f, s) && s.packet.DestinationPort > 27000 && s.packet.DestinationPort < 27200
}
