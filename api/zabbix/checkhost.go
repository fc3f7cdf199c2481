package zabbix

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// What is expected of an interface.
const (
	wantIP   = "an IP address is expected"
	wantPort = "value must be one of 0-65535"
)

// isInterfaceIP reports whether a text can be the IP address of an interface: none, an address, or one with macros.
func isInterfaceIP(text string) bool {
	if text == "" || hasMacro(text) {
		return true
	}
	_, err := netip.ParseAddr(text)
	return err == nil
}

// missingAddress says what an interface lacks by which it can be asked, in Zabbix's words; empty for nothing.
func missingAddress(useIP bool, ip, dns string) string {
	switch {
	case ip == "" && dns == "":
		return "IP and DNS cannot be empty for host interface."
	case useIP && ip == "":
		return fmt.Sprintf("Interface with DNS %q cannot have empty IP address.", dns)
	case !useIP && dns == "":
		return fmt.Sprintf("Interface with IP %q cannot have empty DNS name while having \"Use DNS\" property.", ip)
	}
	return ""
}

// isInterfacePort reports whether a text can be the port of an interface: none, 0 to 65535, or one with macros.
func isInterfacePort(text string) bool {
	if text == "" || hasMacro(text) {
		return true
	}
	_, err := strconv.ParseUint(text, 10, 16)
	return err == nil
}

// hasMacro reports whether there is a user macro or a macro of discovery in a text.
func hasMacro(text string) bool {
	return strings.Contains(text, "{$") || strings.Contains(text, "{#") || strings.Contains(text, "{HOST.")
}
