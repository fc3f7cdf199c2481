package dashboard

import (
	"bytes"
	"fmt"
	"strings"
)

// Step is what becomes of one dashboard when a file is applied.
type Step struct {
	Name string `json:"name"`
	// What is create, change, unchanged or delete.
	What string `json:"what"`
	// Differences are the lines of its YAML that go ("-") and come ("+").
	Differences []string `json:"differences,omitempty"`
}

// Plan compares what there is with what a file says. With replace, what is not in the file is deleted. Steps come in the order of the
// file, deletions after them.
func Plan(have, want []*Dashboard, replace bool) ([]Step, error) {
	byName := make(map[string]*Dashboard, len(have))
	for _, d := range have {
		byName[fold(d.Name)] = d
	}
	steps := []Step{}
	for _, d := range want {
		old := byName[fold(d.Name)]
		delete(byName, fold(d.Name))
		step, err := compare(old, d)
		if err != nil {
			return nil, err
		}
		steps = append(steps, step)
	}
	if replace {
		for _, d := range have {
			if byName[fold(d.Name)] != nil {
				steps = append(steps, Step{Name: d.Name, What: "delete"})
			}
		}
	}
	return steps, nil
}

func compare(old, d *Dashboard) (Step, error) {
	if old == nil {
		return Step{Name: d.Name, What: "create"}, nil
	}
	before, err := Format([]*Dashboard{old})
	if err != nil {
		return Step{}, err
	}
	after, err := Format([]*Dashboard{d})
	if err != nil {
		return Step{}, err
	}
	if bytes.Equal(before, after) {
		return Step{Name: d.Name, What: "unchanged"}, nil
	}
	return Step{Name: d.Name, What: "change", Differences: differences(string(before), string(after))}, nil
}

// maxDifferences bounds the lines of one step; maxCompared the lines that are laid beside each other.
const (
	maxDifferences = 200
	maxCompared    = 2_000
)

// differences are the lines that differ: what both begin and end with is left out, and the middle is compared line by line.
func differences(before, after string) []string {
	a, b := strings.Split(strings.TrimRight(before, "\n"), "\n"), strings.Split(strings.TrimRight(after, "\n"), "\n")
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	var out []string
	if len(a) > maxCompared || len(b) > maxCompared {
		return []string{fmt.Sprintf("%d lines become %d others", len(a), len(b))}
	}
	common := commonLengths(a, b)
	for i, j := 0, 0; i < len(a) || j < len(b); {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && common[i+1][j] >= common[i][j+1]:
			out, i = append(out, "- "+a[i]), i+1
		default:
			out, j = append(out, "+ "+b[j]), j+1
		}
		if len(out) == maxDifferences {
			return append(out, "…")
		}
	}
	return out
}

// commonLengths has the length of the longest common subsequence of each pair of ends.
func commonLengths(a, b []string) [][]uint16 {
	common := make([][]uint16, len(a)+1)
	for i := range common {
		common[i] = make([]uint16, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	return common
}
