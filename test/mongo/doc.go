// Package mongo tests the MongoDB monitor with a real server and real clients, over loopback of both IP versions: what it counts is what the
// clients' drivers say they did.
//
// The server is FerretDB, the clients are the Go driver and the one for Node.js; install.sh gets them. The tests run in a network namespace of
// their own, which needs root. The binary is built by the tests, or named by TIDEMARK_BIN.
package mongo
