package zabbixdb

import "tidemark/model"

// The names that Zabbix's exports have for the numbers of its database (manual, "Configuration export/import" and the API's objects).
var (
	itemTypes = map[string]string{
		"0": "ZABBIX_PASSIVE", "2": "TRAP", "3": "SIMPLE", "5": "INTERNAL", "7": "ZABBIX_ACTIVE", "10": "EXTERNAL", "11": "ODBC", "12": "IPMI",
		"13": "SSH", "14": "TELNET", "15": "CALCULATED", "16": "JMX", "17": "SNMP_TRAP", "18": "DEPENDENT", "19": "HTTP_AGENT", "20": "SNMP_AGENT",
		"21": "SCRIPT", "22": "BROWSER",
	}
	valueTypes = map[string]string{"0": "FLOAT", "1": "CHAR", "2": "LOG", "3": "UNSIGNED", "4": "TEXT", "5": "BINARY"}
	stepTypes  = map[string]string{
		"1": "MULTIPLIER", "2": "RTRIM", "3": "LTRIM", "4": "TRIM", "5": "REGEX", "6": "BOOL_TO_DECIMAL", "7": "OCTAL_TO_DECIMAL",
		"8": "HEX_TO_DECIMAL", "9": "SIMPLE_CHANGE", "10": "CHANGE_PER_SECOND", "11": "XMLPATH", "12": "JSONPATH", "13": "IN_RANGE",
		"14": "MATCHES_REGEX", "15": "NOT_MATCHES_REGEX", "16": "CHECK_JSON_ERROR", "17": "CHECK_XML_ERROR", "18": "CHECK_REGEX_ERROR",
		"19": "DISCARD_UNCHANGED", "20": "DISCARD_UNCHANGED_HEARTBEAT", "21": "JAVASCRIPT", "22": "PROMETHEUS_PATTERN", "23": "PROMETHEUS_TO_JSON",
		"24": "CSV_TO_JSON", "25": "STR_REPLACE", "26": "CHECK_NOT_SUPPORTED", "27": "XML_TO_JSON", "28": "SNMP_WALK_VALUE", "29": "SNMP_WALK_TO_JSON",
		"30": "SNMP_GET_VALUE",
	}
	failActions    = map[string]string{"0": "ORIGINAL_ERROR", "1": "DISCARD_VALUE", "2": "CUSTOM_VALUE", "3": "CUSTOM_ERROR"}
	severities     = map[string]string{"0": "NOT_CLASSIFIED", "1": "INFO", "2": "WARNING", "3": "AVERAGE", "4": "HIGH", "5": "DISASTER"}
	recoveryModes  = map[string]string{"0": "EXPRESSION", "1": "RECOVERY_EXPRESSION", "2": "NONE"}
	enabledNames   = map[string]string{"0": "ENABLED", "1": "DISABLED"}
	yesNames       = map[string]string{"0": "NO", "1": "YES"}
	discoverNames  = map[string]string{"0": "DISCOVER", "1": "NO_DISCOVER"}
	macroTypes     = map[string]string{"0": "TEXT", "1": "SECRET_TEXT", "2": "VAULT"}
	mappingTypes   = map[string]string{"0": "EQUAL", "1": "GREATER_OR_EQUAL", "2": "LESS_OR_EQUAL", "3": "IN_RANGE", "4": "REGEXP", "5": "DEFAULT"}
	httpAuthTypes  = map[string]string{"0": "NONE", "1": "BASIC", "2": "NTLM", "3": "KERBEROS", "4": "DIGEST"}
	sshAuthTypes   = map[string]string{"0": "PASSWORD", "1": "PUBLIC_KEY"}
	postTypes      = map[string]string{"0": "RAW", "2": "JSON", "3": "XML"}
	retrieveModes  = map[string]string{"0": "BODY", "1": "HEADERS", "2": "BOTH"}
	requestMethods = map[string]string{"0": "GET", "1": "POST", "2": "PUT", "3": "HEAD"}
	outputFormats  = map[string]string{"0": "RAW", "1": "JSON"}
	interfaceTypes = map[string]string{"1": "ZABBIX", "2": "SNMP", "3": "IPMI", "4": "JMX"}
	snmpVersions   = map[string]string{"1": "SNMPV1", "2": "SNMPV2", "3": "SNMPV3"}
	securityLevels = map[string]string{"0": "NOAUTHNOPRIV", "1": "AUTHNOPRIV", "2": "AUTHPRIV"}
	authProtocols  = map[string]string{"0": "MD5", "1": "SHA1", "2": "SHA224", "3": "SHA256", "4": "SHA384", "5": "SHA512"}
	privProtocols  = map[string]string{"0": "DES", "1": "AES128", "2": "AES192", "3": "AES256", "4": "AES192C", "5": "AES256C"}
	inventoryModes = map[string]string{"-1": "DISABLED", "0": "MANUAL", "1": "AUTOMATIC"}
	ipmiAuthTypes  = map[string]string{"-1": "DEFAULT", "0": "NONE", "1": "MD2", "2": "MD5", "4": "STRAIGHT", "5": "OEM", "6": "RMCP_PLUS"}
	ipmiPrivileges = map[string]string{"1": "CALLBACK", "2": "USER", "3": "OPERATOR", "4": "ADMIN", "5": "OEM"}

	filterKinds     = map[string]string{"0": "AND_OR", "1": "AND", "2": "OR", "3": "FORMULA"}
	filterOperators = map[string]string{"8": "MATCHES_REGEX", "9": "NOT_MATCHES_REGEX", "12": "EXISTS", "13": "NOT_EXISTS"}
	nameOperators   = map[string]string{"0": "EQUAL", "1": "NOT_EQUAL", "2": "LIKE", "3": "NOT_LIKE", "8": "REGEXP", "9": "NOT_REGEXP"}
	prototypeKinds  = map[string]string{"0": "ITEM_PROTOTYPE", "1": "TRIGGER_PROTOTYPE", "2": "GRAPH_PROTOTYPE", "3": "HOST_PROTOTYPE"}
	deleteKinds     = map[string]string{"0": "DELETE_AFTER", "1": "DELETE_NEVER", "2": "DELETE_IMMEDIATELY"}
	disableKinds    = map[string]string{"0": "DISABLE_AFTER", "1": "DISABLE_NEVER", "2": "DISABLE_IMMEDIATELY"}

	graphTypes    = map[string]string{"0": "NORMAL", "1": "STACKED", "2": "PIE", "3": "EXPLODED"}
	axisTypes     = map[string]string{"0": "CALCULATED", "1": "FIXED", "2": "ITEM"}
	drawTypes     = map[string]string{"0": "SINGLE_LINE", "1": "FILLED_REGION", "2": "BOLD_LINE", "3": "DOTTED_LINE", "4": "DASHED_LINE", "5": "GRADIENT_LINE"}
	calcFunctions = map[string]string{"1": "MIN", "2": "AVG", "4": "MAX", "7": "ALL", "9": "LAST"}
	graphItems    = map[string]string{"0": "SIMPLE", "2": "GRAPH_SUM"}
	axisSides     = map[string]string{"0": "LEFT", "1": "RIGHT"}
)

// inventoryFields are the columns of host_inventory in the order of items.inventory_link, from 1.
var inventoryFields = model.InventoryFields()
