// Package script tells stories over the real binary: one file of testdata each. It holds tests only.
package script
