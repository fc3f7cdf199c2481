package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
)

// print measures and prints.
func (p *plan) print(ctx context.Context) error {
	if err := p.measureAll(ctx); err != nil {
		return err
	}
	if p.asJSON {
		return p.printJSON()
	}
	for _, kind := range p.kinds {
		fmt.Printf("\nValues: %s. M points a second per core of CPU used (in all: written + read); bytes a value.\n\n", kind)
		p.printTable(kind)
		fmt.Println()
		p.printTargets(kind)
	}
	for _, note := range p.notes {
		fmt.Println("\nNote:", note)
	}
	return nil
}

func (p *plan) titles() []string {
	var titles []string
	for _, c := range columns {
		titles = append(titles, c.title)
	}
	return titles
}

func (p *plan) printTable(kind string) {
	fmt.Println("| |", strings.Join(p.titles(), " | "), "| "+atRestColumn+" |")
	fmt.Println(strings.Repeat("|---", len(columns)+2) + "|")
	for _, engine := range p.engines {
		row := "| " + engine
		for _, title := range p.titles() {
			f, ok := p.median(kind, engine, title)
			if !ok {
				row += " | –"
				continue
			}
			row += fmt.Sprintf(" | %.3g (%.3g + %.3g)", f.perCore()/1e6, f.Writes/1e6, f.Reads/1e6)
		}
		if f, ok := p.median(kind, engine, atRestColumn); ok {
			at := ""
			if engine == netdataName {
				at = "≥ " // its newest values are in no file
			}
			row += fmt.Sprintf(" | %s%.3g", at, f.BytesPerSample)
			if f.SummariesPerSample > 0 {
				row += fmt.Sprintf(" (and %.3g of summaries)", f.SummariesPerSample)
			}
		} else {
			row += " | –"
		}
		fmt.Println(row + " |")
	}
}

// target is a goal and what came of it.
type target struct {
	goal string
	got  string
	met  bool
}

// targets compares what the engine did with its goals.
func (p *plan) targets(kind string) []target {
	var list []target
	atLeast := func(goal string, value, want float64, unit string) {
		list = append(list, target{goal, fmt.Sprintf("%.3g%s", value, unit), value >= want})
	}
	ours := func(i int) (figures, bool) { return p.median(kind, tidemark, columns[i].title) }
	ratio := func(i int, goal string, peers ...string) {
		f, ok := ours(i)
		best := 0.0
		for _, peer := range peers {
			if g, ok := p.median(kind, peer, columns[i].title); ok {
				best = max(best, g.perCore())
			}
		}
		if ok && best > 0 {
			atLeast(goal, f.perCore()/best, 4, "×")
		}
	}
	if f, ok := ours(0); ok {
		atLeast("writes: 22 M/s per core", f.perCore()/1e6, 22, " M/s")
		atLeast("writes: 43 M/s in all", f.Writes/1e6, 43, " M/s")
	}
	ratio(0, "writes: 4 × netdata", netdataName)
	ratio(1, "cached reads: 4 × netdata", netdataName)
	if f, ok := ours(2); ok {
		list = append(list, target{"mixed: 118 M/s read beside 10 M/s written", fmt.Sprintf("%.3g M/s beside %.3g M/s", f.Reads/1e6, f.Writes/1e6), f.Reads >= 118e6 && f.Writes >= 10e6})
	}
	if f, ok := ours(3); ok {
		atLeast("reads, 64 MiB: 10 M/s per core", f.perCore()/1e6, 10, " M/s")
	}
	ratio(3, "reads, 64 MiB: 4 × the best", prometheusName, victoriaName, netdataName)
	if f, ok := ours(4); ok {
		list = append(list, target{"mixed, 64 MiB: 5 M/s read beside 10 M/s written", fmt.Sprintf("%.3g M/s beside %.3g M/s", f.Reads/1e6, f.Writes/1e6), f.Reads >= 5e6 && f.Writes >= 10e6})
	}
	if f, ok := p.median(kind, tidemark, atRestColumn); ok {
		if g, ok := p.median(kind, victoriaName, atRestColumn); ok {
			list = append(list, target{"bytes a value at rest: at most VictoriaMetrics'", fmt.Sprintf("%.4g beside %.4g", f.BytesPerSample, g.BytesPerSample), f.BytesPerSample <= g.BytesPerSample})
		}
	}
	return list
}

func (p *plan) printTargets(kind string) {
	if !slices.Contains(p.engines, tidemark) {
		return
	}
	fmt.Println("| target | measured | met |")
	fmt.Println("|---|---|---|")
	for _, t := range p.targets(kind) {
		met := "no"
		if t.met {
			met = "yes"
		}
		fmt.Printf("| %s | %s | %s |\n", t.goal, t.got, met)
	}
	if f, ok := p.median(kind, tidemark, columns[2].title); ok {
		fmt.Printf("\nBeside writers 99 %% of our queries took at most %.3g ms and 99.9 %% of our appends %.3g ms.\n", f.QueryP99, f.AppendP999)
	}
}

// printJSON prints each measurement.
func (p *plan) printJSON() error {
	type row struct {
		Values  string    `json:"values"`
		Engine  string    `json:"engine"`
		Column  string    `json:"column"`
		Figures []figures `json:"runs"`
	}
	rows := []row{}
	for _, kind := range p.kinds {
		for _, engine := range p.engines {
			for _, title := range append(p.titles(), atRestColumn) {
				if f := p.all[cell{kind, engine, title}]; len(f) > 0 {
					rows = append(rows, row{kind, engine, title, f})
				}
			}
		}
	}
	out := json.NewEncoder(os.Stdout)
	out.SetIndent("", "  ")
	return out.Encode(map[string]any{"measurements": rows, "notes": p.notes})
}
