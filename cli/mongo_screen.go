package cli

import (
	"fmt"
	"math"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"tidemark/sniff"
)

// topTick says that another interval was counted, topEnd that no more will come.
type (
	topTick struct{}
	topEnd  struct{ err error }
)

// topScreen is the state of the live table.
type topScreen struct {
	name          string
	live          *sniff.Live
	view          sniff.View
	bars          []sniff.Bar
	width, height int
	order         sniff.Order
	filter        string
	typing        bool // the filter
	frozen        bool
	details       bool
	selected      int
	ended         string
}

func newTopScreen(name string, live *sniff.Live) *topScreen {
	return &topScreen{name: name, live: live, width: 80, height: 24}
}

// Init implements tea.Model.
func (s *topScreen) Init() tea.Cmd { return nil }

// Update implements tea.Model.
func (s *topScreen) Update(m tea.Msg) (tea.Model, tea.Cmd) {
	switch m := m.(type) {
	case tea.WindowSizeMsg:
		s.width, s.height = max(m.Width, 40), max(m.Height, 10)
	case topTick:
		s.refresh()
	case topEnd:
		s.ended = "end of the capture"
		if m.err != nil {
			s.ended = m.err.Error()
		}
	case tea.KeyPressMsg:
		return s, s.key(m.String())
	}
	return s, nil
}

// refresh takes a new view, unless the table is frozen.
func (s *topScreen) refresh() {
	if s.frozen {
		return
	}
	s.view = s.live.View(s.order, s.filter)
	s.selected = max(0, min(s.selected, len(s.view.Rows)-1))
	s.bars = nil
	if s.details && len(s.view.Rows) > 0 {
		r := &s.view.Rows[s.selected]
		s.bars = s.live.Histogram(r.Instance, r.Fingerprint)
	}
}

// topOrders are the keys that sort.
var topOrders = map[string]sniff.Order{"l": sniff.ByLoad, "r": sniff.ByRate, "p": sniff.ByP95, "e": sniff.ByErrors, "b": sniff.ByBytes}

func (s *topScreen) key(k string) tea.Cmd {
	if s.typing {
		s.typeFilter(k)
		s.refresh()
		return nil
	}
	switch k {
	case "q", "ctrl+c":
		return tea.Quit
	case "space":
		s.frozen = !s.frozen
	case "/":
		s.typing = true
		return nil
	case "esc":
		if s.details {
			s.details = false
		} else {
			s.filter = ""
		}
	case "enter":
		s.details = !s.details
	case "up", "k":
		s.selected--
	case "down", "j":
		s.selected++
	case "pgdown":
		s.selected += 10
	case "pgup":
		s.selected -= 10
	default:
		order, known := topOrders[k]
		if !known {
			return nil
		}
		s.order = order
	}
	s.selected = max(0, min(s.selected, len(s.view.Rows)-1))
	s.refresh()
	return nil
}

func (s *topScreen) typeFilter(k string) {
	switch k {
	case "enter":
		s.typing = false
	case "esc":
		s.typing, s.filter = false, ""
	case "backspace":
		if r := []rune(s.filter); len(r) > 0 {
			s.filter = string(r[:len(r)-1])
		}
	case "space":
		s.filter += " "
	default:
		if len([]rune(k)) == 1 {
			s.filter += k
		}
	}
}

// View implements tea.Model.
func (s *topScreen) View() tea.View {
	lines := s.head()
	if s.details && len(s.view.Rows) > 0 {
		lines = append(lines, s.detail()...)
	} else {
		lines = append(lines, s.table(s.height-len(lines)-1)...)
	}
	for len(lines) < s.height-1 {
		lines = append(lines, "")
	}
	lines = append(lines[:s.height-1], s.foot())
	for i := range lines {
		lines[i] = ansi.Truncate(lines[i], s.width, "…")
	}
	v := tea.NewView(strings.Join(lines, "\n"))
	v.AltScreen = true
	return v
}

// plain is the table without a terminal.
func (s *topScreen) plain() string {
	return strings.Join(append(s.head(), s.table(math.MaxInt)...), "\n")
}

// The styles: numbers that matter stand out, nothing else.
const (
	styleBold    = "\x1b[1m"
	styleDim     = "\x1b[2m"
	styleReverse = "\x1b[7m"
	styleRed     = "\x1b[31m"
	styleOff     = "\x1b[0m"
)

// styled sets a text off, on a terminal only.
func (s *topScreen) styled(style, text string) string {
	if s.live == nil {
		return text
	}
	return style + text + styleOff
}

// head are the lines above the table.
func (s *topScreen) head() []string {
	v := &s.view
	title := fmt.Sprintf("%s  load %s  %s req/s  p95 %s  %s err/s  in %s out %s", s.name,
		s.styled(styleBold, percent(v.Load)), amount(v.Rate), millis(v.P95Millis), amount(v.Errors), amount(v.InRate), amount(v.OutRate))
	c := v.Counters.Losses()
	lost := fmt.Sprintf("%d flows, %d TLS, %d duplicates; lost: kernel %d, gaps %d, unmatched %d, unread %d",
		v.Counters.Flows, c.EncryptedFlows, c.Duplicates, c.KernelDrops, c.Gaps, c.UnmatchedRequests+c.UnmatchedReplies, c.Unread)
	style := styleDim
	if c.KernelDrops > 0 {
		style = styleRed
	}
	lines := []string{title, s.styled(style, lost)}
	if v.At == 0 && s.live != nil {
		lines = append(lines, "", "waiting for the first second")
	} else if len(v.Rows) == 0 {
		lines = append(lines, "", s.nothing())
	}
	return lines
}

// nothing says why the table is empty.
func (s *topScreen) nothing() string {
	switch c := &s.view.Counters; {
	case s.filter != "":
		return fmt.Sprintf("no shape holds %q", s.filter)
	case c.Flow.Encrypted > 0:
		return "the connections are encrypted (TLS): their requests cannot be seen on the wire"
	case c.Flow.Segments > 0:
		return "traffic on the port, but no MongoDB request yet"
	}
	return "no traffic on the port yet; is it the right interface and --port? (clients on a unix socket are invisible)"
}

// wide is from which width on a shape stands on the line of its numbers.
const wide = 132

// table are the lines of the table, at most rows of them.
func (s *topScreen) table(rows int) []string {
	if len(s.view.Rows) == 0 {
		return nil
	}
	const columns = "  LOAD% TREND       REQ/S    P50    P95    P99   ERR   IN/S  OUT/S"
	lines := []string{s.styled(styleDim, columns)}
	each := 2
	if s.width >= wide {
		each = 1
		lines[0] = s.styled(styleDim, columns+"  SHAPE")
	}
	fit := max(1, (rows-1)/each)
	first := max(0, min(s.selected-fit+1, len(s.view.Rows)-fit))
	for i := first; i < len(s.view.Rows) && i < first+fit; i++ {
		r := &s.view.Rows[i]
		numbers := fmt.Sprintf("%7s %s %8s %6s %6s %6s %5s %6s %6s", percent(r.Load), sparkline(r.History, 9), amount(r.Rate),
			millis(r.P50Millis), millis(r.P95Millis), millis(r.P99Millis), share(r.ErrorRate, r.Rate), amount(r.InRate), amount(r.OutRate))
		if i == s.selected {
			numbers = s.styled(styleReverse, numbers)
		}
		shape := s.styled(styleBold, r.Namespace) + "  " + r.Shape
		if each == 1 {
			lines = append(lines, numbers+"  "+shape)
		} else {
			lines = append(lines, numbers, "        "+shape)
		}
	}
	return lines
}

// detail are the lines about the selected shape.
func (s *topScreen) detail() []string {
	r := &s.view.Rows[s.selected]
	lines := []string{"", s.styled(styleBold, r.Namespace) + "  on " + r.Instance + "  fingerprint " + r.Fingerprint}
	lines = append(lines, strings.Split(ansi.Hardwrap(r.Shape, s.width, true), "\n")...)
	lines = append(lines, "",
		fmt.Sprintf("load %s   %s req/s   %d requests and %d errors since the start", percent(r.Load), amount(r.Rate), r.Requests, r.Errors),
		fmt.Sprintf("p50 %s   p95 %s   p99 %s   max %s", millis(r.P50Millis), millis(r.P95Millis), millis(r.P99Millis), millis(r.MaxMillis)),
		fmt.Sprintf("in %sB/s   out %sB/s%s", amount(r.InRate), amount(r.OutRate), documentRate(r.Documents)))
	for _, c := range r.Codes {
		lines = append(lines, fmt.Sprintf("error %d: %d times", c.Code, c.Count))
	}
	lines = append(lines, "", "load of the last minute  "+sparkline(r.History, min(60, s.width-26)), "", s.styled(styleDim, "LATENCY OF THE LAST 10 SECONDS"))
	most := uint64(1)
	for _, b := range s.bars {
		most = max(most, b.Count)
	}
	for _, b := range s.bars[max(0, min(len(s.bars), len(s.bars)-(s.height-len(lines)-5))):] {
		length := int(math.Ceil(float64(b.Count) / float64(most) * float64(max(10, s.width-34))))
		lines = append(lines, fmt.Sprintf("%8s … %-8s %8d %s", millis(b.From), millis(b.To), b.Count, strings.Repeat("▇", length)))
	}
	return lines
}

// documentRate says how many documents a second replies told of; nothing where none did, because long batches are not counted.
func documentRate(v float64) string {
	if v == 0 {
		return ""
	}
	return "   " + amount(v) + " documents/s"
}

// foot is the last line.
func (s *topScreen) foot() string {
	text := "q quit  l load r rate p p95 e errors b bytes  / filter  space freeze  ↵ details"
	switch {
	case s.typing:
		return "filter: " + s.filter + "▏"
	case s.ended != "":
		text = s.ended + "  " + text
	}
	if s.frozen {
		text = "frozen  " + text
	}
	if s.filter != "" {
		text = "filter " + s.filter + " (esc clears)  " + text
	}
	return s.styled(styleDim, text)
}

// sparkline draws the last values, as many cells as asked for; several values share a cell.
func sparkline(values []float64, cells int) string {
	if cells <= 0 || len(values) == 0 {
		return ""
	}
	marks := []rune("▁▂▃▄▅▆▇█")
	top := 0.0
	sums := make([]float64, cells)
	for i, v := range values {
		sums[i*cells/len(values)] += v
	}
	for _, v := range sums {
		top = max(top, v)
	}
	var b strings.Builder
	for _, v := range sums {
		if v == 0 {
			b.WriteRune(' ')
			continue
		}
		b.WriteRune(marks[int(v/top*float64(len(marks)-1)+0.5)])
	}
	return b.String()
}

// percent writes a load.
func percent(v float64) string {
	switch {
	case v == 0:
		return "0%"
	case v < 0.1:
		return fmt.Sprintf("%.2f%%", v*100)
	case v < 1:
		return fmt.Sprintf("%.1f%%", v*100)
	}
	return fmt.Sprintf("%.0f%%", v*100)
}

// share writes the part of requests that failed.
func share(errors, all float64) string {
	if errors == 0 || all == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f%%", min(1, errors/all)*100)
}

// amount writes a number with at most four characters and its prefix.
func amount(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v < 10:
		return fmt.Sprintf("%.1f", v)
	case v < 1000:
		return fmt.Sprintf("%.0f", v)
	case v < 10e3:
		return fmt.Sprintf("%.1fk", v/1e3)
	case v < 1e6:
		return fmt.Sprintf("%.0fk", v/1e3)
	case v < 10e6:
		return fmt.Sprintf("%.1fM", v/1e6)
	case v < 1e9:
		return fmt.Sprintf("%.0fM", v/1e6)
	}
	return fmt.Sprintf("%.1fG", v/1e9)
}

// millis writes a latency given in milliseconds.
func millis(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v < 0.1:
		return fmt.Sprintf("%.0fµs", v*1000)
	case v < 10:
		return fmt.Sprintf("%.2gms", v)
	case v < 1000:
		return fmt.Sprintf("%.0fms", v)
	}
	return fmt.Sprintf("%.1fs", v/1000)
}
