package model

// Graph is a graph of a host or of one of its templates.
type Graph struct {
	Name string
	// Prototype says that name and keys hold discovery macros.
	Prototype bool
	// Stack draws the items on top of each other.
	Stack bool
	// Keys are the keys of its items, in its order.
	Keys []string
}
