package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"tidemark/model"
	"tidemark/storage"
	"tidemark/transfer"
)

// historyFile is where an import of values is written down, in the data folder.
const historyFile = "zabbix-history.json"

// historyState is its content: how far each group of items is.
type historyState struct {
	Groups []historyGroup `json:"groups"`
}

// historyGroup are items that were first seen by the same run.
type historyGroup struct {
	Items []model.ItemID `json:"items"`
	// Cuts are the times of the first own values of items, by the item's place in Items; zero for none so far. Unix nanoseconds.
	Cuts []int64 `json:"cuts"`
	// From and To bound the pass that was begun last; From is zero while there are no values.
	From  int64          `json:"from"`
	To    int64          `json:"to"`
	State transfer.State `json:"state"`
	// Hours of trends were added; all before TrendsTo are there.
	Hours    uint64 `json:"hours"`
	TrendsTo int64  `json:"trends_to"`
}

// unfinished says that a pass was begun and broken off.
func (g *historyGroup) unfinished() bool { return g.To != 0 && !g.State.Done }

func (g *historyGroup) cuts() map[model.ItemID]int64 {
	m := make(map[model.ItemID]int64)
	for i, cut := range g.Cuts {
		if cut != 0 {
			m[g.Items[i]] = cut
		}
	}
	return m
}

// load reads the state and adds a group of the items that it does not have. Items that are not here any more are left out.
func (i *historyImport) load() error {
	name := filepath.Join(i.o.Data, historyFile)
	text, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err == nil {
		if err := json.Unmarshal(text, &i.state); err != nil {
			return fmt.Errorf("%s: %w; remove it to begin anew", name, err)
		}
	}
	known := make(map[model.ItemID]bool)
	for _, g := range i.state.Groups {
		if len(g.Cuts) != len(g.Items) {
			return fmt.Errorf("%s is damaged: %d cuts of %d items; remove it to begin anew", name, len(g.Cuts), len(g.Items))
		}
		for _, id := range g.Items {
			known[id] = true
		}
	}
	var fresh historyGroup
	for _, item := range i.items {
		if !known[item.ID] {
			fresh.Items = append(fresh.Items, item.ID)
		}
	}
	if len(fresh.Items) > 0 {
		slices.Sort(fresh.Items)
		fresh.Cuts = make([]int64, len(fresh.Items))
		i.state.Groups = append(i.state.Groups, fresh)
	}
	return nil
}

// save replaces the file as a whole.
func (i *historyImport) save() error {
	text, err := json.Marshal(&i.state)
	if err != nil {
		return err
	}
	return replaceFile(filepath.Join(i.o.Data, historyFile), text)
}

// begin sets the bounds of a new pass: up to now or the time that was asked for, and for each item up to its first own value. What came
// since the last pass and is behind its end cannot be from Zabbix.
func (i *historyImport) begin(ctx context.Context, g *historyGroup) error {
	until := time.Now().Add(-lateWriting)
	if !i.o.Until.IsZero() && i.o.Until.Before(until) {
		until = i.o.Until
	}
	for k, id := range g.Items {
		if g.Cuts[k] != 0 {
			continue
		}
		q := storage.Query{Items: []model.ItemID{id}, Range: model.TimeRange{From: g.State.Through, To: maxStoredTime}}
		err := i.side.engine.Read(ctx, q, func(c *model.Columns) error {
			if len(c.At) == 0 {
				return nil
			}
			g.Cuts[k] = c.At[0]
			return errFound
		})
		if err != nil && !errors.Is(err, errFound) {
			return fmt.Errorf("look for values that are here: %w", err)
		}
	}
	if g.From == 0 {
		first, err := i.source.First(ctx, g.Items)
		if err != nil {
			return err
		}
		if !i.o.Since.IsZero() && first != 0 {
			first = max(first, i.o.Since.UnixNano())
		}
		g.From = first
	}
	g.To, g.State.Done = max(until.UnixNano(), g.State.Through), false
	return i.save()
}

// maxStoredTime is behind all times of values.
const maxStoredTime = int64(1) << 62

var errFound = errors.New("found")
