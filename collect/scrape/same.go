package scrape

import (
	"bytes"
	"hash/maphash"
	"math"
	"strconv"
	"strings"

	"github.com/prometheus/prometheus/model/value"
)

// form is how an answer in the text format looked without its values. Nearly all answers of a target look like the one before; then the parser,
// which has read that one, has nothing new to say, and only the values are read.
type form struct {
	contentType string
	seed        maphash.Seed
	hash        uint64
	// order are the entries of the lines with samples; nil for one that the answer had before. Without any there is no form.
	order []*entry
}

// learn takes note of an answer that was read as these entries with these values.
func (f *form) learn(body []byte, contentType string, order []*entry, values []float64) {
	f.order = nil
	if !strings.HasPrefix(contentType, "text/plain") {
		return
	}
	if f.hash == 0 {
		f.seed = maphash.MakeSeed()
	}
	lines := 0
	hash, ok := shape(f.seed, body, func(text []byte) bool {
		v, ok := number(text)
		lines++
		return ok && lines <= len(values) && math.Float64bits(v) == math.Float64bits(values[lines-1])
	})
	if ok && lines == len(order) {
		f.hash, f.order, f.contentType = hash, order, contentType
	}
}

// values reads the values of an answer of this form, appended to dst.
func (f *form) values(body []byte, contentType string, dst []float64) ([]float64, bool) {
	if len(f.order) == 0 || contentType != f.contentType {
		return dst, false
	}
	hash, ok := shape(f.seed, body, func(text []byte) bool {
		v, ok := number(text)
		dst = append(dst, v)
		return ok && len(dst) <= len(f.order)
	})
	return dst, ok && hash == f.hash && len(dst) == len(f.order)
}

// shape calls fn for the last word of each line that is no comment, which is its value, until fn returns false; the hash is that of all else.
func shape(seed maphash.Seed, body []byte, fn func(value []byte) bool) (uint64, bool) {
	var h maphash.Hash
	h.SetSeed(seed)
	from := 0
	for at := 0; at < len(body); {
		end := bytes.IndexByte(body[at:], '\n')
		if end < 0 {
			return 0, false // The parser wants a line break at the end.
		}
		line := body[at : at+end]
		start := at
		at += end + 1
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		space := bytes.LastIndexByte(line, ' ')
		if space < 0 || !fn(line[space+1:]) {
			return 0, false
		}
		_, _ = h.Write(body[from : start+space+1]) // never fails
		_ = h.WriteByte(0)                         // where the value was
		from = at - 1
	}
	_, _ = h.Write(body[from:])
	return h.Sum64(), true
}

// number reads a value as the parser does.
func number(text []byte) (float64, bool) {
	if bytes.ContainsAny(text, "pP_") {
		return 0, false
	}
	v, err := strconv.ParseFloat(string(text), 64)
	if math.IsNaN(v) {
		v = math.Float64frombits(value.NormalNaN)
	}
	return v, err == nil
}

// again takes the samples of an answer that differs from the one before in its values only; false when it must be parsed. Nothing has changed then.
func (p *parsing) again(body []byte, contentType string) bool {
	c := &p.t.cache
	var ok bool
	if c.values, ok = c.form.values(body, contentType, c.values[:0]); !ok {
		return false
	}
	for _, e := range c.form.order {
		if e != nil && !e.dropped && (!e.known || !p.w.Known(e.ref)) {
			return false
		}
	}
	for i, e := range c.form.order {
		p.counts.scraped++
		if e == nil {
			continue
		}
		e.round = c.round
		if !e.dropped {
			p.counts.kept++
			p.w.Add(e.ref, p.at, c.values[i])
		}
	}
	return true
}
