package server

import (
	"time"

	"tidemark/model"
	"tidemark/storage"
)

const day = 24 * time.Hour

// How long declared items are kept.
const (
	declaredHistory = 31 * day
	declaredTrends  = 365 * day
)

// retentionClasses are the steps in which retention is kept: an item gets the first class that keeps its values and trends at
// least as long as it asks. Retention by class costs nothing per value, where a time per item would need row deletes.
func retentionClasses() []retentionClass {
	return []retentionClass{
		{History: day, Trends: 31 * day},
		{History: day, Trends: 365 * day},
		{History: 7 * day, Trends: 90 * day},
		{History: 7 * day, Trends: 365 * day},
		{History: 14 * day, Trends: 365 * day},
		{History: 31 * day, Trends: 365 * day},
		{History: 90 * day, Trends: 365 * day},
		{History: 90 * day, Trends: 5 * 365 * day},
		{History: 365 * day, Trends: 5 * 365 * day},
		{History: 5 * 365 * day, Trends: 10 * 365 * day},
		{},
	}
}

// classOf returns the index of the class for a retention.
func classOf(classes []retentionClass, history, trends time.Duration) uint8 {
	enough := func(have, want time.Duration) bool { return have == 0 || have >= want }
	for i, c := range classes {
		if enough(c.History, history) && enough(c.Trends, trends) {
			return uint8(i)
		}
	}
	return uint8(len(classes) - 1)
}

// minimumAge returns the minimum age of values whose history is kept so long (0: for ever): that of the longest history in MinimumAges that it reaches; zero
// if there is none.
func (o *Options) minimumAge(history time.Duration) time.Duration {
	var reached, age time.Duration
	for _, m := range o.MinimumAges {
		if (history == 0 || history >= m.History) && m.History >= reached {
			reached, age = m.History, m.Age
		}
	}
	return age
}

// definition is all that the engine is told of an item.
func definition(classes []retentionClass, item *model.Item) storage.ItemDefinition {
	// Items of a host with one interval come in one tick and share their times.
	group := uint64(item.HostID)<<20 | uint64(item.Interval/time.Second)&(1<<20-1)
	return storage.ItemDefinition{
		ID: item.ID, Type: item.ValueType, Group: group, Class: classOf(classes, item.History, item.Trends), Share: uint64(item.HostID),
	}
}
