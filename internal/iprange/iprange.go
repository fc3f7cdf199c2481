// Package iprange reads lists of ranges of IP addresses as people write them for network discovery: "10.0.0.1-50, 10.0.1.0/24,
// 192.168.1-3.1-255, 2001:db8::1-ff, fd00::/120".
package iprange

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"net/netip"
	"strconv"
	"strings"
)

const (
	// maxTextBytes bounds a list.
	maxTextBytes = 64 << 10
	// maxRanges bounds the ranges of a list.
	maxRanges = 1024
	// minBits4 and minBits6 are the largest networks.
	minBits4, minBits6 = 8, 96
)

// List is a list of ranges.
type List []Range

// Range is a set of addresses that have each of their groups between two bounds: octets in version 4, 16 bits in version 6.
type Range struct {
	six bool
	// from and to are the bounds of each group; 4 or 8 of them are in use.
	from, to [8]uint16
	// inner leaves out the first and the last address: those of the network and of all its hosts.
	inner bool
}

// Parse reads a list of ranges, separated by commas or line breaks.
func Parse(text string) (List, error) {
	if len(text) > maxTextBytes {
		return nil, fmt.Errorf("%d bytes of ranges; expected at most %d", len(text), maxTextBytes)
	}
	var list List
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == '\n' }) {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		r, err := parseRange(part)
		if err != nil {
			return nil, fmt.Errorf("range %.100q: %w", part, err)
		}
		if list = append(list, r); len(list) > maxRanges {
			return nil, fmt.Errorf("more than %d ranges", maxRanges)
		}
	}
	if len(list) == 0 {
		return nil, errors.New("there is no range; expected addresses such as 10.0.0.1-254 or 10.0.0.0/24")
	}
	return list, nil
}

func parseRange(text string) (Range, error) {
	if strings.Contains(text, "/") {
		return parseNetwork(text)
	}
	separator, base, groups := ".", 10, 4
	r := Range{}
	if strings.Contains(text, ":") {
		separator, base, groups, r.six = ":", 16, 8, true
		text = full(text)
	}
	parts := strings.Split(text, separator)
	if len(parts) != groups {
		return r, errors.New("expected an address, each group of which may be a range, or a network")
	}
	top := uint64(math.MaxUint8)
	if r.six {
		top = math.MaxUint16
	}
	for i, part := range parts {
		low, high, isRange := strings.Cut(part, "-")
		from, err := strconv.ParseUint(low, base, 16)
		to := from
		if err == nil && isRange {
			to, err = strconv.ParseUint(high, base, 16)
		}
		if err != nil || from > to || to > top {
			return r, fmt.Errorf("%q; expected a number up to %d or a range such as 1-50", part, top)
		}
		r.from[i], r.to[i] = uint16(from), uint16(to)
	}
	return r, nil
}

// full writes the groups that "::" stands for.
func full(text string) string {
	before, after, found := strings.Cut(text, "::")
	if !found {
		return text
	}
	left, right := strings.Count(before, ":")+1, strings.Count(after, ":")+1
	if before == "" {
		left = 0
	}
	if after == "" {
		right = 0
	}
	if left+right > 7 {
		return text
	}
	groups := make([]string, 0, 8)
	if left > 0 {
		groups = append(groups, before)
	}
	for range 8 - left - right {
		groups = append(groups, "0")
	}
	if right > 0 {
		groups = append(groups, after)
	}
	return strings.Join(groups, ":")
}

func parseNetwork(text string) (Range, error) {
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return Range{}, errors.New("expected a network such as 10.0.0.0/24")
	}
	p = p.Masked()
	r := Range{six: p.Addr().Is6()}
	least, groupBits := minBits4, 8
	if r.six {
		least, groupBits = minBits6, 16
	}
	if p.Bits() < least {
		return r, fmt.Errorf("the network is too large; expected at least /%d", least)
	}
	r.inner = !r.six && p.Bits() <= 30
	raw := p.Addr().AsSlice()
	for i := range len(raw) * 8 / groupBits {
		group := uint16(raw[i*groupBits/8])
		if r.six {
			group = group<<8 | uint16(raw[i*2+1])
		}
		free := min(groupBits, max(0, (i+1)*groupBits-p.Bits()))
		r.from[i], r.to[i] = group, group|uint16(1<<free-1)
	}
	return r, nil
}

func (r *Range) groups() int {
	if r.six {
		return 8
	}
	return 4
}

// Count is how many addresses the list has, those in several ranges as often as they are; at most math.MaxInt.
func (l List) Count() int {
	sum := 0
	for i := range l {
		r, n := &l[i], 1
		for g := range r.groups() {
			width := int(r.to[g]-r.from[g]) + 1
			if n > math.MaxInt/width {
				return math.MaxInt
			}
			n *= width
		}
		if r.inner {
			n -= 2
		}
		if sum > math.MaxInt-n {
			return math.MaxInt
		}
		sum += n
	}
	return sum
}

// Contains reports whether an address is in the list.
func (l List) Contains(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	for i := range l {
		if l[i].contains(a) {
			return true
		}
	}
	return false
}

func (r *Range) contains(a netip.Addr) bool {
	if !a.IsValid() || a.Is6() != r.six {
		return false
	}
	raw := a.AsSlice()
	first, last := true, true
	for g := range r.groups() {
		v := uint16(raw[g%len(raw)])
		if r.six {
			v = uint16(raw[2*g])<<8 | uint16(raw[2*g+1])
		}
		if v < r.from[g] || v > r.to[g] {
			return false
		}
		first, last = first && v == r.from[g], last && v == r.to[g]
	}
	return !r.inner || !first && !last
}

// All walks the addresses, range by range in order.
func (l List) All() iter.Seq[netip.Addr] {
	return func(yield func(netip.Addr) bool) {
		for i := range l {
			if !l[i].walk(yield) {
				return
			}
		}
	}
}

func (r *Range) walk(yield func(netip.Addr) bool) bool {
	at := r.from
	for {
		if a := r.address(&at); r.contains(a) && !yield(a) {
			return false
		}
		g := r.groups() - 1
		for ; g >= 0; g-- {
			if at[g] < r.to[g] {
				at[g]++
				break
			}
			at[g] = r.from[g]
		}
		if g < 0 {
			return true
		}
	}
}

func (r *Range) address(at *[8]uint16) netip.Addr {
	if !r.six {
		return netip.AddrFrom4([4]byte{byte(at[0]), byte(at[1]), byte(at[2]), byte(at[3])})
	}
	var raw [16]byte
	for g, v := range at {
		raw[2*g], raw[2*g+1] = byte(v>>8), byte(v)
	}
	return netip.AddrFrom16(raw)
}
