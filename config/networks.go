package config

import (
	"fmt"
	"net/netip"
	"strings"
)

// ParseNetworks reads networks and addresses with commas between them.
func ParseNetworks(text string) ([]netip.Prefix, error) {
	var list []netip.Prefix
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		p, err := netip.ParsePrefix(part)
		if err != nil {
			ip, ipErr := netip.ParseAddr(part)
			if ipErr != nil {
				return nil, fmt.Errorf("found %.60q; expected networks with commas between them, such as 10.0.0.0/8,fd00::/8", part)
			}
			p = netip.PrefixFrom(ip, ip.BitLen())
		}
		list = append(list, p.Masked())
	}
	return list, nil
}
