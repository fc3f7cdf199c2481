package zbx

// Request is a request of a sender or agent. Its slices lie in the body that it was decoded from.
type Request struct {
	// Name says what is asked: SenderData, AgentData, ActiveChecks, Heartbeat, or something else.
	Name []byte
	// Host is the technical host name; agents before 4.4 give it in the rows only.
	Host []byte
	// Session is the token that the ids of values belong to, 32 hexadecimal digits; empty for none.
	Session []byte
	// Version is the sender's version, "6.0" or "7.0.3"; empty for agents that do not say it.
	Version []byte
	// Metadata, Interface, IP are what an agent says of itself for auto-registration; empty when it does not.
	Metadata, Interface, IP []byte
	// Port is where the agent listens for passive checks; zero when it does not say.
	Port uint64
	// Variant is 1 for agent and 2 for agent 2; zero when it does not say.
	Variant uint64
	// ConfigRevision is the revision of the list that the agent holds.
	ConfigRevision uint64
	// HeartbeatSeconds is how often the agent sends a heartbeat.
	HeartbeatSeconds uint64
	// Tidemark is the version of our own extension that the peer speaks; zero for none.
	Tidemark uint64
	// Data and Declare are the arrays as JSON text, nil when absent; see NewRows and NewDeclarations.
	Data, Declare []byte
	// History, Availability, Registrations and Finds, those of network discovery, are the arrays of a proxy as JSON text, nil when absent.
	History, Availability, Registrations, Finds []byte
	// Tasks are what a proxy says of tasks, as JSON text, nil when absent; see DecodeTasks.
	Tasks []byte
	// Tables is the object of a configuration for a passive proxy as JSON text, nil when absent.
	Tables []byte
	// More is not zero when a proxy has more values than it sends.
	More uint64
	// Clock and NS are the time of a proxy, Unix seconds and nanoseconds.
	Clock, NS uint64
}

// MaxNameBytes bounds host names, item keys, tokens and metadata in a request, in bytes. Keys of 2,048 characters of up to
// 4 bytes are the longest that Zabbix stores.
const MaxNameBytes = 8192

// DecodeRequest reads a request. It checks the syntax of the whole body, so that walking Data and Declare cannot meet a
// syntax error later. It unescapes strings of the outer object in place. An unknown member is passed over; of a member that
// comes twice the first counts. The error is a *SyntaxError.
func DecodeRequest(body []byte) (Request, error) {
	var r Request
	s := scanner{b: body}
	if s.peek() != '{' {
		return r, s.fail("'{' at the start of a request")
	}
	first := true
	for {
		more, err := s.next(&first, '}')
		if err != nil {
			return r, err
		}
		if !more {
			break
		}
		k, err := s.key()
		if err != nil {
			return r, err
		}
		if err := r.member(&s, k); err != nil {
			return r, err
		}
	}
	if s.peek(); s.p != len(s.b) && !allZero(s.b[s.p:]) {
		return r, s.fail("nothing behind the closing '}'")
	}
	return r, nil
}

// allZero reports whether b holds only zero bytes: some old senders count the end of a C string into the body.
func allZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

func (r *Request) member(s *scanner, k []byte) error {
	switch string(k) {
	case "data":
		if s.peek() == '{' {
			return object(s, &r.Tables)
		}
		return array(s, &r.Data)
	case "history data":
		return array(s, &r.History)
	case "interface availability":
		return array(s, &r.Availability)
	case "discovery data":
		return array(s, &r.Finds)
	case "auto registration":
		return array(s, &r.Registrations)
	case "tasks":
		return array(s, &r.Tasks)
	case "more":
		return number(s, &r.More)
	case "clock":
		return number(s, &r.Clock)
	case "ns":
		return number(s, &r.NS)
	case "declare":
		return array(s, &r.Declare)
	case "request":
		return name(s, &r.Name)
	case "host":
		return name(s, &r.Host)
	case "session":
		return name(s, &r.Session)
	case "version":
		return name(s, &r.Version)
	case "host_metadata":
		return name(s, &r.Metadata)
	case "interface", "hostinterface":
		return name(s, &r.Interface)
	case "ip":
		return name(s, &r.IP)
	case "port":
		return number(s, &r.Port)
	case "variant":
		return number(s, &r.Variant)
	case "config_revision":
		return number(s, &r.ConfigRevision)
	case "heartbeat_freq":
		return number(s, &r.HeartbeatSeconds)
	case "tidemark":
		return number(s, &r.Tidemark)
	}
	return s.skip(1)
}

// array takes the extent of an array; another value is passed over.
func array(s *scanner, dst *[]byte) error {
	if s.peek() != '[' {
		return s.skip(1)
	}
	start := s.p
	if err := s.skipRows(1); err != nil {
		return err
	}
	if *dst == nil {
		*dst = s.b[start:s.p:s.p]
	}
	return nil
}

// object takes the extent of an object.
func object(s *scanner, dst *[]byte) error {
	start := s.p
	if err := s.skip(1); err != nil {
		return err
	}
	if *dst == nil {
		*dst = s.b[start:s.p:s.p]
	}
	return nil
}

// name takes a text; a number stands for its digits.
func name(s *scanner, dst *[]byte) error {
	text, k, err := s.scalar()
	if err != nil {
		return err
	}
	if len(text) > MaxNameBytes {
		return s.fail("a name of at most 8192 bytes")
	}
	if k != kindNone && *dst == nil {
		*dst = text
	}
	return nil
}

// number takes an unsigned integer, also one in quotes; anything else leaves dst as it is.
func number(s *scanner, dst *uint64) error {
	text, _, err := s.scalar()
	if err != nil {
		return err
	}
	if n, ok := parseUint(text); ok && *dst == 0 {
		*dst = n
	}
	return nil
}
