package mongodb

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"tidemark/model"
)

// sample is one number of an answer, with what makes it an item: key "mongodb.FAMILY[INSTANCE,PARAMETERS…,MODE]".
type sample struct {
	family, mode, title, units string
	kind                       model.ValueType
	// of are the thing's label and value, such as {"db", "shop"}, in the order of the key's parameters.
	of [][2]string
	// rises marks what is counted since the server's start, so that charts show the rate.
	rises bool
	// slow marks what is asked for once a minute at most.
	slow bool
	bits uint64
	text string
}

func whole(family, mode, title, units string, v uint64, rises bool) sample {
	return sample{family: family, mode: mode, title: title, units: units, kind: model.Uint, rises: rises, bits: v}
}

func fraction(family, mode, title, units string, v float64, rises bool) sample {
	return sample{family: family, mode: mode, title: title, units: units, kind: model.Float, rises: rises, bits: math.Float64bits(v)}
}

func wording(family, mode, title, v string) sample {
	return sample{family: family, mode: mode, title: title, kind: model.Text, text: v, slow: true}
}

// about returns the sample as one of a thing.
func (s sample) about(of ...[2]string) sample {
	s.of = of
	return s
}

func (s sample) seldom() sample {
	s.slow = true
	return s
}

func (s *sample) key(instance string) string {
	var b strings.Builder
	b.WriteString("mongodb." + s.family + "[" + parameter(instance))
	for _, p := range s.of {
		b.WriteString("," + parameter(p[1]))
	}
	b.WriteString("," + s.mode + "]")
	return b.String()
}

func (s *sample) name() string {
	thing := ""
	for i, p := range s.of {
		if i > 0 {
			thing += "."
		}
		thing += p[1]
	}
	if thing == "" {
		return "MongoDB: " + s.title
	}
	return "MongoDB " + thing + ": " + s.title
}

func (s *sample) labels(instance string) model.Labels {
	labels := model.Labels{{Name: "instance", Value: instance}, {Name: "mode", Value: s.mode}, {Name: "section", Value: "mongodb"}}
	for _, p := range s.of {
		labels = append(labels, model.Label{Name: p[0], Value: p[1]})
	}
	if s.rises {
		labels = append(labels, model.Label{Name: "type", Value: "counter"})
	}
	slices.SortFunc(labels, func(a, b model.Label) int { return cmp.Compare(a.Name, b.Name) })
	return labels
}

// maxNameBytes bounds a name that comes from the server.
const maxNameBytes = 120

// parameter writes a parameter of an item key, quoted where the notation needs it.
func parameter(s string) string {
	if len(s) > maxNameBytes {
		s = strings.ToValidUTF8(s[:maxNameBytes], "")
	}
	if s == "" || strings.ContainsAny(s, "[],\"") || s[0] == ' ' {
		return `"` + strings.ReplaceAll(s, `"`, `\"`) + `"`
	}
	return s
}
