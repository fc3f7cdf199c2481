package dashboard

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The limits of one dashboard. A widget asks for at most so much, and a page of them for at most MaxWidgets times as much.
const (
	MaxWidgets   = 60
	MaxItems     = 20
	MaxQueries   = 10
	MaxVariables = 10
	MaxRows      = 2_000
	MaxHeight    = 60
	Columns      = 24

	maxNameRunes  = 120
	maxTextBytes  = 16 << 10
	maxExprBytes  = 4 << 10
	maxLineBytes  = 512
	maxValues     = 200
	maxThresholds = 5
	maxGroups     = 100
	maxLimit      = 100
	minRefresh    = 5
	maxRefresh    = 3_600
)

var (
	variableName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,31}$`)
	labelName    = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]{0,127}$`)
	rangeText    = regexp.MustCompile(`^[1-9][0-9]{0,3}[smhdw]$`)

	severities    = []string{"not classified", "information", "warning", "average", "high", "disaster"}
	variableKinds = []string{"host", "group", "label", "list"}
)

// fold is how names are compared.
func fold(name string) string { return strings.ToLower(name) }

// checker keeps the first mistake.
type checker struct {
	where string
	err   error
}

func (c *checker) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("%w %s: %s", ErrInvalid, c.where, fmt.Sprintf(format, args...))
	}
}

// line checks a short text of one line.
func (c *checker) line(what, text string, required bool) {
	switch {
	case text == "" && required:
		c.fail("%s is missing", what)
	case len(text) > maxLineBytes:
		c.fail("%s has %d bytes, at most %d", what, len(text), maxLineBytes)
	default:
		c.text(what, text, maxLineBytes)
		if strings.ContainsAny(text, "\n\r") {
			c.fail("%s has more than one line", what)
		}
	}
}

// text checks that a text can be shown and kept: UTF-8 without control characters but line ends and tabs.
func (c *checker) text(what, text string, most int) {
	if len(text) > most {
		c.fail("%s has %d bytes, at most %d", what, len(text), most)
	}
	if !utf8.ValidString(text) {
		c.fail("%s is no UTF-8", what)
	}
	if i := strings.IndexFunc(text, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }); i >= 0 {
		c.fail("%s has a control character at byte %d", what, i+1)
	}
}

func (c *checker) between(what string, n, low, high int) {
	if n < low || n > high {
		c.fail("%s is %d, expected %d to %d", what, n, low, high)
	}
}

func (c *checker) most(what string, n, limit int) {
	if n > limit {
		c.fail("%d %s, at most %d", n, what, limit)
	}
}

func (c *checker) oneOf(what, word string, words []string) {
	if !slices.Contains(words, word) {
		c.fail("%s is %.40q, expected %s", what, word, strings.Join(words, ", "))
	}
}

// Check returns the first mistake of a dashboard, as ErrInvalid.
func (d *Dashboard) Check() error {
	c := &checker{where: fmt.Sprintf("%.60q", d.Name)}
	c.line("name", d.Name, true)
	if strings.TrimSpace(d.Name) != d.Name || utf8.RuneCountInString(d.Name) > maxNameRunes {
		c.fail("name must have 1 to %d letters and no space at its ends", maxNameRunes)
	}
	c.text("description", d.Description, maxTextBytes)
	if d.Range != "" && !rangeText.MatchString(d.Range) {
		c.fail("range is %.40q, expected a number with s, m, h, d or w, such as 6h", d.Range)
	}
	if d.Refresh != 0 {
		c.between("refresh_seconds", d.Refresh, minRefresh, maxRefresh)
	}
	c.line("owner", d.Owner, false)
	c.most("groups", len(d.Groups), maxGroups)
	for _, name := range d.Groups {
		c.line("a user group", name, true)
	}
	if d.Private && d.Everyone {
		c.fail("private and everyone contradict each other")
	}
	c.most("variables", len(d.Variables), MaxVariables)
	c.most("widgets", len(d.Widgets), MaxWidgets)
	if c.err != nil {
		return c.err
	}
	name, seen := c.where, map[string]bool{}
	for i := range d.Variables {
		v := &d.Variables[i]
		c.where = fmt.Sprintf("%s, variable %d", name, i+1)
		if seen[v.Name] {
			c.fail("there are two called %q", v.Name)
		}
		seen[v.Name] = true
		v.check(c)
	}
	for i := range d.Widgets {
		w := &d.Widgets[i]
		c.where = fmt.Sprintf("%s, widget %d", name, i+1)
		if w.Title != "" {
			c.where += fmt.Sprintf(" (%.60q)", w.Title)
		}
		w.check(c)
	}
	return c.err
}

func (v *Variable) check(c *checker) {
	if !variableName.MatchString(v.Name) {
		c.fail("name is %.40q, expected a small letter and up to 31 small letters, digits and _", v.Name)
	}
	c.oneOf("kind", v.Kind, variableKinds)
	c.line("title", v.Title, false)
	c.line("group", v.Group, false)
	c.line("default", v.Default, false)
	c.line("match", v.Match, false)
	if v.Kind == "label" && !labelName.MatchString(v.Label) {
		c.fail("label is %.40q, expected the name of a label", v.Label)
	}
	if v.Kind == "list" && len(v.Values) == 0 {
		c.fail("values is empty, expected the choices of the list")
	}
	if v.Kind != "label" && v.Label+v.Match != "" || v.Kind != "list" && len(v.Values) > 0 || v.Kind != "host" && v.Group != "" {
		c.fail("a variable of kind %s has a field of another kind", v.Kind)
	}
	c.most("values", len(v.Values), maxValues)
	for _, value := range v.Values {
		c.line("a value", value, true)
	}
}

// needs says what widgets of a kind must and may have: the least and most items, and queries instead of them.
type needs struct {
	least, most int
	queries     bool
}

var widgetNeeds = map[string]needs{
	"chart": {1, MaxItems, true}, "number": {1, 1, true}, "table": {1, MaxItems, true}, "log": {1, 1, false}, "timeline": {1, MaxItems, false},
	"problems": {}, "requests": {}, "graph": {}, "text": {},
}

// Kinds are the kinds of widgets.
func Kinds() []string {
	return []string{"chart", "number", "table", "problems", "requests", "graph", "log", "timeline", "text"}
}

func (w *Widget) check(c *checker) {
	need, ok := widgetNeeds[w.Kind]
	if !ok {
		c.oneOf("kind", w.Kind, Kinds())
		return
	}
	c.line("title", w.Title, false)
	c.between("w", w.W, 1, Columns)
	c.between("x", w.X, 0, Columns-max(1, min(w.W, Columns)))
	c.between("h", w.H, 1, MaxHeight)
	c.between("y", w.Y, 0, MaxRows)
	c.most("queries", len(w.Queries), MaxQueries)
	c.most("items", len(w.Items), MaxItems)
	count := len(w.Items) + len(w.Queries)
	switch {
	case len(w.Queries) > 0 && !need.queries:
		c.fail("widgets of kind %s take no queries", w.Kind)
	case count < need.least:
		c.fail("it shows nothing; a widget of kind %s needs an item%s", w.Kind, map[bool]string{true: " or a query"}[need.queries])
	case count > max(need.most, 0) && need.most < MaxItems:
		c.fail("it has %d items and queries, a widget of kind %s takes at most %d", count, w.Kind, need.most)
	}
	for i := range w.Items {
		w.Items[i].check(c)
	}
	for _, q := range w.Queries {
		if strings.TrimSpace(q.Expr) == "" {
			c.fail("a query is empty, expected PromQL")
		}
		c.text("a query", q.Expr, maxExprBytes)
		c.line("legend", q.Legend, false)
	}
	w.checkRest(c)
}

func (w *Widget) checkRest(c *checker) {
	c.line("units", w.Units, false)
	c.line("host", w.Host, w.Kind == "graph")
	c.line("graph", w.Graph, w.Kind == "graph")
	c.line("group", w.Group, false)
	c.line("instance", w.Instance, w.Kind == "requests")
	c.between("limit", w.Limit, 0, maxLimit)
	c.text("text", w.Text, maxTextBytes)
	if w.Kind == "text" && w.Text == "" {
		c.fail("text is missing")
	}
	c.most("thresholds", len(w.Thresholds), maxThresholds)
	for _, t := range w.Thresholds {
		c.oneOf("the severity of a threshold", t.Severity, severities)
		if t.Value != t.Value || t.Value > 1e300 || t.Value < -1e300 {
			c.fail("a threshold is no number")
		}
	}
	c.most("severities", len(w.Severities), len(severities))
	for _, s := range w.Severities {
		c.oneOf("a severity", s, severities)
	}
}

func (i *Item) check(c *checker) {
	c.line("the key of an item", i.Key, true)
	c.line("the host of an item", i.Host, false)
	c.line("the group of an item", i.Group, false)
	c.line("the name of an item", i.Name, false)
	if (i.Host == "") == (i.Group == "") {
		c.fail("item %.60q needs a host or a group, and not both", i.Key)
	}
}
