package model

// InterfaceType says what a host is reached by. The numbers are Zabbix's.
type InterfaceType uint8

// The types of interfaces.
const (
	AgentInterface InterfaceType = 1
	SNMPInterface  InterfaceType = 2
	IPMIInterface  InterfaceType = 3
	JMXInterface   InterfaceType = 4
)

// Interface is where a host is reached for one type of checks.
type Interface struct {
	Type InterfaceType
	// Main is set for the interface that items use which name none.
	Main bool
	// Ref is the name by which items of an export name it.
	Ref string
	// Address is the IP address or the DNS name that is in use, as configured: it may hold macros.
	Address string
	// Port is as configured: a number or a macro.
	Port string
	// IP and DNS are both addresses as configured; Address is the one in use.
	IP, DNS string
	// SNMP is set for SNMP interfaces.
	SNMP *SNMPAccess
}

// ConnectionKind is how a peer's connection is protected; several are one mask. The numbers are Zabbix's.
type ConnectionKind uint8

// The kinds of connections.
const (
	Unencrypted ConnectionKind = 1
	PSK         ConnectionKind = 2
	Certificate ConnectionKind = 4
)

// String names the kind as Zabbix's agents do in their configuration.
func (k ConnectionKind) String() string {
	switch k {
	case Unencrypted:
		return "unencrypted"
	case PSK:
		return "psk"
	case Certificate:
		return "cert"
	}
	return "unknown"
}

// Secret is a key that is neither printed nor logged nor encoded.
type Secret []byte

// String hides the secret.
func (s Secret) String() string { return "(secret)" }

// GoString hides the secret.
func (s Secret) GoString() string { return "(secret)" }

// MarshalText hides the secret.
func (s Secret) MarshalText() ([]byte, error) { return []byte("(secret)"), nil }

// HostTLS says how a host's connections must be protected. A host without it connects and is connected to unencrypted.
type HostTLS struct {
	HostID HostID
	// Connect is the kind with which the server connects to the host's agent.
	Connect ConnectionKind
	// Accept is the mask of the kinds by which values for the host may come.
	Accept ConnectionKind
	// Identity and Key are the host's pre-shared key: an identity of 1 to 128 characters and a key of 16 to 256 bytes.
	Identity string
	Key      Secret
	// OldIdentity and OldKey are the pair that was replaced; it is accepted until OldUntil, Unix nanoseconds.
	OldIdentity string
	OldKey      Secret
	OldUntil    int64
	// Issuer and Subject, where not empty, must be those of the peer's certificate, as RFC 4514 writes them.
	Issuer, Subject string
}
