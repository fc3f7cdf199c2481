// Package conformance feeds Debian's Zabbix 6.0 server and ours the same random input through the sender protocol and compares
// what they make of it: events, stored values, hourly trends. Every difference is a defect or is listed in
// docs/design/0034-conformance.md.
//
// It takes minutes and needs root to install its peers, and runs by itself, not beside other tests: make conformance.
// TIDEMARK_CONFORMANCE_SEED chooses another input.
package conformance
