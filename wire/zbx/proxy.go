package zbx

import "strconv"

// ProxyRequest builds the requests of a proxy: Begin; for `proxy data` AddInterface for each interface, Add for each value, AddFind for each row of
// network discovery, AddAgent for each agent, AddTask for each result of a task, in this order; End.
type ProxyRequest struct {
	// Name is ProxyData, ProxyConfig or ProxyHeartbeat; empty for what a passive proxy answers to a request for its data.
	Name string
	// Host is the proxy's name, Session what the ids of its values belong to, Version the line whose protocol it speaks: "6.0.0".
	Host, Session, Version string

	list string
}

// Begin appends the head of the request to dst.
func (p *ProxyRequest) Begin(dst []byte) []byte {
	p.list = ""
	if p.Name == "" {
		dst = AppendString(append(dst, `{"session":`...), p.Session)
		return dst
	}
	dst = AppendString(append(dst, `{"request":`...), p.Name)
	dst = appendMember(dst, "host", []byte(p.Host))
	return appendMember(dst, "session", []byte(p.Session))
}

// open begins a list, or another element of the one that is open.
func (p *ProxyRequest) open(dst []byte, list string) []byte {
	if p.list == list {
		return append(dst, ',')
	}
	dst = append(p.close(dst), ',', '"')
	p.list = list
	return append(append(dst, list...), `":[`...)
}

func (p *ProxyRequest) close(dst []byte) []byte {
	if p.list != "" {
		dst = append(dst, ']')
	}
	p.list = ""
	return dst
}

// AddInterface appends whether an interface answers: 0 for unknown, 1 for yes, 2 for no with the reason.
func (p *ProxyRequest) AddInterface(dst []byte, id uint64, available int, reason string) []byte {
	dst = strconv.AppendUint(append(p.open(dst, "interface availability"), `{"interfaceid":`...), id, 10)
	dst = strconv.AppendInt(append(dst, `,"available":`...), int64(available), 10)
	return append(AppendString(append(dst, `,"error":`...), reason), '}')
}

// Add appends a value.
func (p *ProxyRequest) Add(dst []byte, row *Row) []byte {
	return row.Append(p.open(dst, "history data"))
}

// ProxiedAgent is an agent that asked a proxy for its list.
type ProxiedAgent struct {
	// At is when, Unix seconds.
	At                      int64
	Host, IP, DNS, Metadata string
	Port                    int
	// Connection is how its connection was protected, as Zabbix numbers it.
	Connection int
}

// AddAgent appends an agent.
func (p *ProxyRequest) AddAgent(dst []byte, a *ProxiedAgent) []byte {
	dst = strconv.AppendInt(append(p.open(dst, "auto registration"), `{"clock":`...), a.At, 10)
	dst = AppendString(append(dst, `,"host":`...), a.Host)
	dst = AppendString(append(dst, `,"ip":`...), a.IP)
	dst = AppendString(append(dst, `,"dns":`...), a.DNS)
	dst = append(strconv.AppendInt(append(dst, `,"port":"`...), int64(a.Port), 10), '"')
	dst = appendMember(dst, "host_metadata", []byte(a.Metadata))
	dst = append(dst, `,"flags":0`...)
	return append(appendNumber(dst, "tls_accepted", uint64(a.Connection)), '}')
}

// AddTask appends what became of a task.
func (p *ProxyRequest) AddTask(dst []byte, t *Task) []byte {
	return t.append(p.open(dst, "tasks"))
}

// End appends the end: when it is sent, Unix nanoseconds, and whether there is more to send.
func (p *ProxyRequest) End(dst []byte, at int64, more bool) []byte {
	dst = appendMember(p.close(dst), "version", []byte(p.Version))
	if p.Name == ProxyData || p.Name == "" {
		if more {
			dst = append(dst, `,"more":1`...)
		}
		dst = strconv.AppendInt(append(dst, `,"clock":`...), at/1e9, 10)
		dst = strconv.AppendInt(append(dst, `,"ns":`...), at%1e9, 10)
	}
	return append(dst, '}')
}
