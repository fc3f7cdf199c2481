// Package metrics tests scrapes and remote write of the built binary against Debian's prometheus and prometheus-node-exporter, over kills of
// the server. install.sh installs the peers when they are missing, which needs root; the tests fail when it cannot.
//
// The binary is built by the tests, or named by TIDEMARK_BIN.
package metrics
