package proxyconfig

import "tidemark/model"

// The names of exports with the numbers of the tables.
var (
	ipmiAuth      = map[string]int{"DEFAULT": -1, "NONE": 0, "MD2": 1, "MD5": 2, "STRAIGHT": 4, "OEM": 5, "RMCP_PLUS": 6}
	ipmiPrivilege = map[string]int{"CALLBACK": 1, "USER": 2, "OPERATOR": 3, "ADMIN": 4, "OEM": 5}
	snmpVersions  = map[string]int{"SNMPV1": 1, "SNMPV2": 2, "SNMPV3": 3}
	snmpLevels    = map[string]int{"NOAUTHNOPRIV": 0, "AUTHNOPRIV": 1, "AUTHPRIV": 2}
	snmpAuth      = map[string]int{"MD5": 0, "SHA1": 1, "SHA224": 2, "SHA256": 3, "SHA384": 4, "SHA512": 5}
	snmpPriv      = map[string]int{"DES": 0, "AES128": 1, "AES192": 2, "AES256": 3, "AES192C": 4, "AES256C": 5}
	postTypes     = map[string]int{"RAW": 0, "JSON": 2, "XML": 3}
	retrieves     = map[string]int{"BODY": 0, "HEADERS": 1, "BOTH": 2}
	methods       = map[string]int{"GET": 0, "POST": 1, "PUT": 2, "HEAD": 3}
	httpAuth      = map[string]int{"NONE": 0, "BASIC": 1, "NTLM": 2, "KERBEROS": 3, "DIGEST": 4}
	shellAuth     = map[string]int{"PASSWORD": 0, "PUBLIC_KEY": 1}
)

// index returns the number of a name; missing for one that is not known.
func index(names map[string]int, name string, missing int) int {
	if n, ok := names[name]; ok {
		return n
	}
	return missing
}

func authNames(t model.ItemType) map[string]int {
	if t == model.HTTPAgent {
		return httpAuth
	}
	return shellAuth
}

func authType(t model.ItemType, name string) int { return index(authNames(t), name, 0) }
