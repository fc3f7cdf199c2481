// Package lint holds the house rules that a test keeps: import layers, package comments, sizes.
package lint
