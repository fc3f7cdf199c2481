// Package lint holds the house rules that its tests keep: import layers, package comments, documented names, sizes.
// layers.txt is the list of layers.
package lint
