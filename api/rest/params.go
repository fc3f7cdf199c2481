package rest

import (
	"encoding/base64"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"tidemark/api"
	"tidemark/model"
)

// maxTextBytes bounds a text parameter such as search.
const maxTextBytes = 200

// params reads the query parameters of a request and keeps the first mistake.
type params struct {
	values url.Values
	err    error
}

func readParams(r *http.Request) *params {
	values, err := url.ParseQuery(r.URL.RawQuery)
	p := &params{values: values}
	if err != nil {
		p.fail("the query of the address cannot be read: %v", err)
	}
	return p
}

func (p *params) fail(format string, args ...any) {
	if p.err == nil {
		p.err = api.BadRequest(fmt.Sprintf(format, args...))
	}
}

// text returns a parameter of at most maxTextBytes.
func (p *params) text(name string) string {
	v := p.values.Get(name)
	if len(v) > maxTextBytes {
		p.fail("%s has %d bytes, expected at most %d", name, len(v), maxTextBytes)
		return ""
	}
	return v
}

// number returns a whole number between low and high, or the default when it is not given.
func (p *params) number(name string, otherwise, low, high int64) int64 {
	v := p.values.Get(name)
	if v == "" {
		return otherwise
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < low || n > high {
		p.fail("%s is %.40q, expected a whole number from %d to %d", name, v, low, high)
		return otherwise
	}
	return n
}

func (p *params) limit() int { return int(p.number("limit", defaultLimit, 1, maxLimit)) }

// maxMillis is the largest time that nanoseconds can hold (the year 2262).
const maxMillis = math.MaxInt64 / 1_000_000

// timeRange reads from and to; to is now when not given.
func (p *params) timeRange(now int64) model.TimeRange {
	r := model.TimeRange{
		From: p.number("from", 0, -maxMillis, maxMillis) * 1e6,
		To:   p.number("to", floorMillis(now)+1, -maxMillis, maxMillis) * 1e6,
	}
	if r.From >= r.To {
		p.fail("from is not before to: %d, %d", r.From/1e6, r.To/1e6)
	}
	return r
}

// flag reads true, 1, false, 0 or nothing.
func (p *params) flag(name string) bool {
	switch v := p.values.Get(name); v {
	case "", "0", "false":
		return false
	case "1", "true":
		return true
	default:
		p.fail("%s is %.40q, expected true or false", name, v)
		return false
	}
}

// parseID reads a decimal id that is not zero. The configuration counts in 63 bits: it cannot be asked for more.
func parseID(what, text string) (uint64, error) {
	id, err := strconv.ParseUint(text, 10, 63)
	if err != nil || id == 0 {
		return 0, api.BadRequest(fmt.Sprintf("%s is %.40q, expected a decimal id", what, text))
	}
	return id, nil
}

// host reads the id of a host, zero when not given.
func (p *params) host() model.HostID {
	v := p.values.Get("host")
	if v == "" {
		return 0
	}
	id, err := parseID("host", v)
	if err != nil && p.err == nil {
		p.err = err
	}
	return model.HostID(id)
}

// items reads ids with commas between.
func (p *params) items(name string, most int) []model.ItemID {
	v := p.values.Get(name)
	if v == "" {
		return nil
	}
	if n := strings.Count(v, ",") + 1; n > most {
		p.fail("%s has %d ids, expected at most %d", name, n, most)
		return nil
	}
	var ids []model.ItemID
	for part := range strings.SplitSeq(v, ",") {
		id, err := parseID(name, strings.TrimSpace(part))
		if err != nil {
			p.fail("%s", err)
			return nil
		}
		ids = append(ids, model.ItemID(id))
	}
	return ids
}

// severities reads names with commas between.
func (p *params) severities() []model.Severity {
	v := p.text("severity")
	if v == "" {
		return nil
	}
	var list []model.Severity
	for name := range strings.SplitSeq(v, ",") {
		s, ok := parseSeverity(strings.TrimSpace(name))
		if !ok {
			p.fail("severity is %.40q, expected not classified, information, warning, average, high or disaster", name)
			return nil
		}
		list = append(list, s)
	}
	return list
}

func parseSeverity(name string) (model.Severity, bool) {
	for s := model.NotClassified; s <= model.Disaster; s++ {
		if strings.EqualFold(strings.ReplaceAll(name, "_", " "), s.String()) {
			return s, true
		}
	}
	return 0, false
}

// maxCursorBytes bounds a cursor before it is decoded.
const maxCursorBytes = 1 << 10

// encodeCursor makes a cursor of the parts that name the last row of a page. Callers must not look into it.
func encodeCursor(kind string, parts ...string) string {
	for i, part := range parts {
		parts[i] = url.QueryEscape(part)
	}
	return base64.RawURLEncoding.EncodeToString([]byte(kind + ":" + strings.Join(parts, ":")))
}

// cursor reads a cursor of a kind with a number of parts; nil when none is given.
func (p *params) cursor(kind string, count int) []string {
	v := p.values.Get("cursor")
	if v == "" {
		return nil
	}
	parts, ok := decodeCursor(v, kind, count)
	if !ok {
		p.fail("cursor is %.40q, expected what the page before gave as next", v)
		return nil
	}
	return parts
}

func decodeCursor(text, kind string, count int) ([]string, bool) {
	if len(text) > maxCursorBytes {
		return nil, false
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil, false
	}
	rest, ok := strings.CutPrefix(string(raw), kind+":")
	if !ok {
		return nil, false
	}
	parts := strings.Split(rest, ":")
	if len(parts) != count {
		return nil, false
	}
	for i := range parts {
		if parts[i], err = url.QueryUnescape(parts[i]); err != nil {
			return nil, false
		}
	}
	return parts, true
}

// cursorID reads a cursor that is one id; zero when none is given.
func (p *params) cursorID(kind string) uint64 {
	parts := p.cursor(kind, 1)
	if parts == nil {
		return 0
	}
	id, err := strconv.ParseUint(parts[0], 10, 63)
	if err != nil {
		p.fail("cursor does not hold an id")
	}
	return id
}
