package model

import "time"

// Collect is what collectors need of an item besides its key, macros expanded. It may be shared by items and must not be changed.
type Collect struct {
	// Key is the item's key with the macros of its interface and secret ones expanded; empty when it has none.
	Key string
	// KeySecrets are the secret macros in the item's key, as they stand there, with their values.
	KeySecrets []Macro
	// Secrets are the secret macros in all texts that the item is collected and preprocessed by, the key's too, as they stand there, with their values.
	Secrets []Macro
	// InterfaceRef names the interface of the host; empty for the main one of the type that fits.
	InterfaceRef string
	// Timeout bounds one check; zero is the default of the item type.
	Timeout time.Duration
	// AuthType is as exports name it: NONE, BASIC, DIGEST, … for HTTP, PASSWORD, PUBLIC_KEY for SSH; empty for the default.
	AuthType           string
	Username, Password string
	// PublicKey and PrivateKey are names of files with keys, for SSH.
	PublicKey, PrivateKey string
	// SNMPOID is what an SNMP item asks for: an OID, get[…], walk[…] or discovery[…].
	SNMPOID     string
	IPMISensor  string
	JMXEndpoint string
	// Parameters are those of a script.
	Parameters []Pair
	// HTTP is the request of an HTTP agent item; nil for others.
	HTTP *HTTPRequest
	// Web is the scenario of an item of type WebTest; nil for others.
	Web *WebScenario
}

// Pair is a name with a value; names may repeat.
type Pair struct{ Name, Value string }

// HTTPRequest is the request of an HTTP agent item.
type HTTPRequest struct {
	URL            string
	Query, Headers []Pair
	// Method is GET, POST, PUT or HEAD; PostType is RAW, JSON or XML.
	Method, PostType, Posts string
	// StatusCodes are those that are taken, such as "200,301-303"; empty for all.
	StatusCodes     string
	FollowRedirects bool
	// Retrieve is BODY, HEADERS or BOTH.
	Retrieve string
	// OutputJSON makes a JSON object of headers and body.
	OutputJSON bool
	Proxy      string
	// CertFile and KeyFile are names of files in the server's folder for such files.
	CertFile, KeyFile, KeyPassword string
	VerifyPeer, VerifyHost         bool
}

// SNMPAccess is how an SNMP interface is spoken to. Names are those of exports.
type SNMPAccess struct {
	// Version is SNMPV1, SNMPV2 or SNMPV3.
	Version   string
	Community string
	Context   string
	// SecurityLevel is NOAUTHNOPRIV, AUTHNOPRIV or AUTHPRIV.
	SecurityName, SecurityLevel string
	// AuthProtocol is MD5, SHA1, SHA224, SHA256, SHA384 or SHA512; PrivProtocol DES, AES128, AES192, AES256, AES192C or AES256C.
	AuthProtocol, AuthPassphrase string
	PrivProtocol, PrivPassphrase string
	// Single asks for one variable per request, for devices that fail on several.
	Single bool
	// MaxRepetitions is that of GetBulk; zero is 10.
	MaxRepetitions int
}

// Expand replaces each text that may have macros by what expand makes of it.
func (a *SNMPAccess) Expand(expand func(string) string) {
	for _, field := range []*string{&a.Community, &a.Context, &a.SecurityName, &a.AuthPassphrase, &a.PrivPassphrase} {
		*field = expand(*field)
	}
}

// IPMIAccess is how a host's management controllers are logged in to.
type IPMIAccess struct {
	// AuthType and Privilege are as exports name them; empty for the default.
	AuthType, Privilege string
	Username, Password  string
}

// CheckKey is the item's key as collectors ask for it.
func (i *Item) CheckKey() string {
	if i.Collect != nil && i.Collect.Key != "" {
		return i.Collect.Key
	}
	return i.Key
}

// InterfaceFor returns the interface that an item is asked at; nil when the host has none that fits.
func (h *Host) InterfaceFor(i *Item) *Interface {
	var kinds []InterfaceType
	switch i.Type {
	case PassiveAgent:
		kinds = []InterfaceType{AgentInterface}
	case SNMPAgent, SNMPTrap:
		kinds = []InterfaceType{SNMPInterface}
	case IPMI:
		kinds = []InterfaceType{IPMIInterface}
	case JMX:
		kinds = []InterfaceType{JMXInterface}
	default:
		kinds = []InterfaceType{AgentInterface, SNMPInterface, JMXInterface, IPMIInterface}
	}
	ref := ""
	if i.Collect != nil {
		ref = i.Collect.InterfaceRef
	}
	for _, kind := range kinds {
		for n := range h.Interfaces {
			if at := &h.Interfaces[n]; at.Type == kind && (ref == "" && at.Main || ref != "" && at.Ref == ref) {
				return at
			}
		}
	}
	return nil
}
