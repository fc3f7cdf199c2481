// Package proxy tests proxies with the built binary: Debian's zabbix_proxy 6.0 against our server, over a kill -9 of both. install.sh fetches
// the peer when it is missing, which needs root; the tests fail when it cannot.
//
// The binary is built by the tests, or named by TIDEMARK_BIN.
package proxy
