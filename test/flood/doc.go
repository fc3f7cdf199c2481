// Package flood opens slow connections by the thousand and sends lengths and compressed texts that lie, and looks whether the server stays
// small and goes on answering others. It holds tests only.
package flood
