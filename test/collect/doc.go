// Package collect tests the collectors of the built binary against real peers from Debian's packages, by each kind of connection and
// over a kill -9 of the server. install.sh installs the peers when they are missing, which needs root; the tests fail when it cannot.
//
// The binary is built by the tests, or named by TIDEMARK_BIN.
package collect
