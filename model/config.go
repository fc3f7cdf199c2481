package model

// HostConfig is all that is configured for one host, as a configuration database hands it to a configuration cache:
// templates are resolved, user macros are not yet expanded.
type HostConfig struct {
	Host Host
	// TemplateMacros are the macros of the host's templates, nearest template first; the first match of a name wins.
	TemplateMacros []Macro
	// Items and Triggers are the host's own and the inherited ones. Slices inside them are shared between hosts and must
	// not be changed.
	Items    []ItemConfig
	Triggers []Trigger
	// Rules are the discovery rules; the items that take their values are among Items. Texts are not yet expanded.
	Rules []Rule
}

// ItemConfig is an item as it is configured.
type ItemConfig struct {
	Item
	// HistoryText and TrendsText are the retention texts, such as "90d", "0" or "{$HISTORY}"; Item.History and
	// Item.Trends are not set.
	HistoryText, TrendsText string
	// MasterKey is the key of the master item of a dependent item, on the same host; Item.MasterID and Item.HasDependents are
	// not set.
	MasterKey string
	// ValueMapName is the name of Item.ValueMap, also when there is no value map of that name.
	ValueMapName string
	// TimeoutText is how long a check may take, such as "10s"; empty for the default. Item.Collect.Timeout is not set.
	TimeoutText string
}
