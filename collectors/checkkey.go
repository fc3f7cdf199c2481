package collectors

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"tidemark/collect/self"
	"tidemark/collect/snmptrap"
	"tidemark/expr"
	"tidemark/model"
)

// known are the names of the keys that items of a type may have.
var known = map[model.ItemType][]string{
	model.SimpleCheck: {
		"icmpping", "icmppingloss", "icmppingsec", "net.tcp.service", "net.tcp.service.perf", "net.udp.service", "net.udp.service.perf", "web.certificate.get",
	},
	model.SSH:      {"ssh.run"},
	model.Database: {"db.odbc.select", "db.odbc.get", "db.odbc.discovery"},
	model.JMX:      {"jmx", "jmx.get", "jmx.discovery"},
}

// CheckKey returns why nobody understands the key of an item of a type; nil also where only the host can tell, as an agent with keys of its own.
func CheckKey(t model.ItemType, key string) error {
	switch t {
	case model.Internal:
		return self.CheckKey(key)
	case model.SNMPTrap:
		if _, _, ok := snmptrap.KeyPattern(key); !ok {
			return errors.New("expected snmptrap[regular expression] or snmptrap.fallback")
		}
	}
	names := known[t]
	if name, _ := expr.SplitKey(key); names != nil && !slices.Contains(names, name) {
		return fmt.Errorf("%s is not known to this type of item; expected %s", name, strings.Join(names, ", "))
	}
	return nil
}
