package self

import (
	"fmt"
	"slices"

	"tidemark/expr"
)

// plain are the names after zabbix[ that need no other parameter than their own.
var plain = []string{
	"boottime", "uptime", "version", "hosts", "items", "items_unsupported", "triggers", "requiredperformance", "queue", "preprocessing_queue", "lld_queue",
	"discovery_queue", "connector_queue", "proxy_history", "vps",
}

// Keys are examples of what may be asked for, one of each kind.
func Keys() []string {
	keys := []string{"tidemark[histsync_values_total]", "zabbix[process,poller,avg,busy]", "zabbix[wcache,values]", "zabbix[wcache,history,pused]", "zabbix[vcache,cache,hits]"}
	for _, name := range plain {
		keys = append(keys, "zabbix["+name+"]")
	}
	return keys
}

// CheckKey reports whether this server can answer an internal item, as far as that is known without asking: the error says why not.
func CheckKey(key string) error {
	name, params := expr.SplitKey(key)
	if name != "zabbix" && name != "tidemark" {
		return fmt.Errorf("%s is no internal item; expected zabbix[…] or tidemark[metric]", name)
	}
	if len(params) == 0 || params[0] == "" {
		return fmt.Errorf("%s: expected a name in brackets, such as %s[%s]", key, name, map[string]string{"zabbix": "wcache,values", "tidemark": "histsync_values_total"}[name])
	}
	if name == "tidemark" || slices.Contains(plain, params[0]) {
		return nil
	}
	part := param(params, 1)
	switch params[0] {
	case "process":
		if part != "" {
			return nil
		}
	case "host":
		third := param(params, 2)
		if third == "items" || third == "items_unsupported" || third == "maintenance" || third == "available" || part == "discovery" && third == "interfaces" {
			return nil
		}
	case "cluster":
		if part == "discovery" && param(params, 2) == "nodes" {
			return nil
		}
	case "wcache", "vcache", "tcache", "rcache":
		if _, ok := fills[params[0]+","+part]; ok || params[0]+","+part == "wcache,values" || part == "cache" && params[0] != "wcache" && params[0] != "rcache" {
			return nil
		}
	}
	return fmt.Errorf("%s: %w", key, errKey)
}
