// Package dashboard is the form of dashboards: a grid of widgets with variables, as JSON for the page and as YAML for files.
//
// Format writes a list always the same way, so that what was exported, taken over and exported again is the same bytes. Where
// dashboards are kept, and who may see them, is not decided here.
package dashboard

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"go.yaml.in/yaml/v4"

	"tidemark/internal/yamlload"
)

// ErrInvalid says that a dashboard cannot be taken as it is; the text says where and why.
var ErrInvalid = errors.New("dashboard")

// Dashboard is one dashboard. Fields that are empty are left out of files.
type Dashboard struct {
	Name        string `json:"name" yaml:"name"`
	Description string `json:"description,omitempty" yaml:"description,omitempty"`
	// Everyone says that people who may see only some hosts may see the dashboard, with the values of their hosts. Otherwise only people who see
	// all hosts may: names of hosts may stand in it.
	Everyone bool `json:"everyone,omitempty" yaml:"everyone,omitempty"`
	// Owner is the name of the user whose it is. Private says that only the owner, administrators and the members of Groups, user groups by
	// name, may see it; without Private they may besides others.
	Owner   string   `json:"owner,omitempty" yaml:"owner,omitempty"`
	Private bool     `json:"private,omitempty" yaml:"private,omitempty"`
	Groups  []string `json:"groups,omitempty" yaml:"groups,omitempty"`
	// Range is the time range that it opens with, such as "6h"; empty for the page's own.
	Range string `json:"range,omitempty" yaml:"range,omitempty"`
	// Refresh is how often queries are asked again, in seconds; zero for the page's own 10 s.
	Refresh   int        `json:"refresh_seconds,omitempty" yaml:"refresh_seconds,omitempty"`
	Variables []Variable `json:"variables,omitempty" yaml:"variables,omitempty"`
	Widgets   []Widget   `json:"widgets" yaml:"widgets"`
}

// Variable is a choice above the widgets; "$name" in them stands for what was chosen.
type Variable struct {
	Name  string `json:"name" yaml:"name"`
	Title string `json:"title,omitempty" yaml:"title,omitempty"`
	// Kind is host, group, label or list.
	Kind string `json:"kind" yaml:"kind"`
	// Group limits the hosts of a host variable; it may hold another variable.
	Group string `json:"group,omitempty" yaml:"group,omitempty"`
	// Label is the label whose values are the choices, Match an optional selector of the series that are looked at.
	Label string `json:"label,omitempty" yaml:"label,omitempty"`
	Match string `json:"match,omitempty" yaml:"match,omitempty"`
	// Values are the choices of a list.
	Values []string `json:"values,omitempty" yaml:"values,omitempty"`
	// Default is chosen at first; empty for the first choice.
	Default string `json:"default,omitempty" yaml:"default,omitempty"`
}

// Widget is one rectangle of the grid. Which of the fields at the end count depends on Kind.
type Widget struct {
	// Kind is chart, number, table, problems, requests, graph, log, timeline or text.
	Kind  string `json:"kind" yaml:"kind"`
	Title string `json:"title,omitempty" yaml:"title,omitempty"`
	// X and W are columns of 24, Y and H rows of 32 pixels.
	X int `json:"x" yaml:"x"`
	Y int `json:"y" yaml:"y"`
	W int `json:"w" yaml:"w"`
	H int `json:"h" yaml:"h"`

	Items   []Item  `json:"items,omitempty" yaml:"items,omitempty"`
	Queries []Query `json:"queries,omitempty" yaml:"queries,omitempty"`
	// Stack draws the lines of a chart on top of each other. Units replaces the unit of the values.
	Stack bool   `json:"stack,omitempty" yaml:"stack,omitempty"`
	Units string `json:"units,omitempty" yaml:"units,omitempty"`
	// Thresholds colour a number from a value on.
	Thresholds []Threshold `json:"thresholds,omitempty" yaml:"thresholds,omitempty"`
	// Host and Group say whose problems are listed; Host also whose Graph is drawn.
	Host       string   `json:"host,omitempty" yaml:"host,omitempty"`
	Group      string   `json:"group,omitempty" yaml:"group,omitempty"`
	Severities []string `json:"severities,omitempty" yaml:"severities,omitempty"`
	// Graph is the name of a graph of one of the host's templates.
	Graph string `json:"graph,omitempty" yaml:"graph,omitempty"`
	// Instance is the MongoDB server of a request table, "host/address".
	Instance string `json:"instance,omitempty" yaml:"instance,omitempty"`
	// Limit is how many rows are shown.
	Limit int `json:"limit,omitempty" yaml:"limit,omitempty"`
	// Text is plain text with headings, lists, bold, code and links.
	Text string `json:"text,omitempty" yaml:"text,omitempty"`
}

// Item names items by key; "*" in the key stands for anything.
type Item struct {
	// Host is the technical name of a host; Group, instead, a host group.
	Host  string `json:"host,omitempty" yaml:"host,omitempty"`
	Group string `json:"group,omitempty" yaml:"group,omitempty"`
	Key   string `json:"key" yaml:"key"`
	// Name replaces the item's name in legends.
	Name string `json:"name,omitempty" yaml:"name,omitempty"`
	// Mirror draws downwards: the second direction of a pair.
	Mirror bool `json:"mirror,omitempty" yaml:"mirror,omitempty"`
}

// Query is a PromQL expression. Legend is the name of its lines, in which "{{label}}" stands for the value of a label.
type Query struct {
	Expr   string `json:"expr" yaml:"expr"`
	Legend string `json:"legend,omitempty" yaml:"legend,omitempty"`
}

// Threshold colours what is at or above Value like problems of a severity.
type Threshold struct {
	Value    float64 `json:"value" yaml:"value"`
	Severity string  `json:"severity" yaml:"severity"`
}

// MaxBytes bounds one dashboard as JSON, MaxFileBytes a file of many.
const (
	MaxBytes     = 256 << 10
	MaxFileBytes = 16 << 20
)

// MaxDashboards bounds how many there are.
const MaxDashboards = 500

// Decode reads one dashboard in JSON, strictly, and checks it.
func Decode(text []byte) (*Dashboard, error) {
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("%w: larger than %d KiB; make two of it", ErrInvalid, MaxBytes>>10)
	}
	d := &Dashboard{}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(d); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if decoder.More() {
		return nil, fmt.Errorf("%w: there is more after its end", ErrInvalid)
	}
	return d, d.Check()
}

// Encode writes one dashboard in JSON, always the same way.
func (d *Dashboard) Encode() ([]byte, error) {
	d.normalize()
	text, err := json.Marshal(d)
	if err == nil && len(text) > MaxBytes {
		err = fmt.Errorf("%w %q: larger than %d KiB; make two of it", ErrInvalid, d.Name, MaxBytes>>10)
	}
	return text, err
}

// normalize makes one form of what means the same.
func (d *Dashboard) normalize() {
	if d.Widgets == nil {
		d.Widgets = []Widget{}
	}
}

// file is the form of files.
type file struct {
	Dashboards []*Dashboard `yaml:"dashboards"`
}

// Parse reads a file of dashboards in YAML (JSON is YAML), strictly, and checks them.
func Parse(text []byte) ([]*Dashboard, error) {
	if len(text) > MaxFileBytes {
		return nil, fmt.Errorf("%w: the file is larger than %d MiB", ErrInvalid, MaxFileBytes>>20)
	}
	var f file
	if err := yamlload.Load(text, &f, yaml.WithKnownFields()); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if len(f.Dashboards) > MaxDashboards {
		return nil, fmt.Errorf("%w: the file has %d, at most %d", ErrInvalid, len(f.Dashboards), MaxDashboards)
	}
	names := make(map[string]bool, len(f.Dashboards))
	for n, d := range f.Dashboards {
		if d == nil {
			return nil, fmt.Errorf("%w: number %d of the file is empty", ErrInvalid, n+1)
		}
		if err := d.Check(); err != nil {
			return nil, err
		}
		if names[fold(d.Name)] {
			return nil, fmt.Errorf("%w %q: it is in the file twice", ErrInvalid, d.Name)
		}
		names[fold(d.Name)] = true
		if _, err := d.Encode(); err != nil {
			return nil, err
		}
	}
	return f.Dashboards, nil
}

// Format writes a file of dashboards in YAML in the order given.
func Format(list []*Dashboard) ([]byte, error) {
	f := file{Dashboards: list}
	if f.Dashboards == nil {
		f.Dashboards = []*Dashboard{}
	}
	for _, d := range f.Dashboards {
		d.normalize()
	}
	text, err := yaml.Dump(f, yaml.WithIndent(2), yaml.WithLineWidth(-1))
	if err != nil {
		return nil, fmt.Errorf("write dashboards: %w", err)
	}
	return text, nil
}
