package confdb

import (
	"slices"

	"tidemark/model"
)

// ownerKind tells the two objects that own items and triggers apart.
type ownerKind uint8

const (
	hostOwner ownerKind = iota
	templateOwner
)

func (k ownerKind) String() string { return [...]string{"host", "template"}[k] }

// export is a decoded file.
type export struct {
	version string
	// globalMacros come with imports from a database only.
	globalMacros []packedMacro
	// regexps come with those, and with files written by hand.
	regexps []model.GlobalRegexp

	groups    []groupDef
	templates []*ownerDef
	hosts     []*ownerDef
	// triggers stand beside templates and hosts and belong to none of the file.
	triggers []triggerDef
	graphs   []bodyDef
}

// addTrigger gives a trigger that stands beside templates and hosts to the one of the file that its expression names
// first, so that it is treated like those inside.
func (x *export) addTrigger(t triggerDef) {
	refs, err := itemRefs(t.expression)
	if err != nil || len(refs) == 0 {
		return // the decoder has refused it
	}
	name := t.expression[refs[0].hostAt:refs[0].hostEnd]
	for _, o := range slices.Concat(x.templates, x.hosts) {
		if o.technical == name {
			o.triggers = append(o.triggers, t)
			return
		}
	}
	x.triggers = append(x.triggers, t)
}

// addGraph gives a graph that stands beside templates and hosts to the one of the file that its first item belongs to.
func (x *export) addGraph(g bodyDef) {
	name := graphHost(g.body)
	for _, o := range slices.Concat(x.templates, x.hosts) {
		if o.technical == name {
			o.graphs = append(o.graphs, g)
			return
		}
	}
	x.graphs = append(x.graphs, g)
}

type groupDef struct {
	// kinds that the group is for; exports before 6.2 do not tell them apart.
	host, template bool
	name, uuid     string
}

// ownerDef is a host or a template.
type ownerDef struct {
	ownerFields
	kind      ownerKind
	line      int
	groups    []string
	templates []string
	valueMaps []valueMapDef
	items     []itemDef
	rules     []ruleDef
	triggers  []triggerDef
	graphs    []bodyDef
}

// bodyDef is a graph, a graph prototype or a host prototype.
type bodyDef struct {
	bodyFields
	line int
}

type bodyFields struct {
	kind             model.PrototypeKind
	uuid, name, body string
}

// ownerFields are the columns that are compared to see whether an import changes anything. So are the other *Fields.
type ownerFields struct {
	technical, name, uuid, description string
	enabled                            bool
	tags, macros, interfaces, extra    string
}

type valueMapFields struct{ uuid, name, mappings string }

type valueMapDef struct {
	valueMapFields
	line int
}

type itemFields struct {
	uuid, key, name               string
	kind                          model.ItemType
	valueType                     model.ValueType
	enabled                       bool
	delay, history, trends, units string
	description                   string
	steps, tags, extra            string
}

type itemDef struct {
	itemFields
	line int
}

type ruleFields struct{ uuid, key, name, body string }

type ruleDef struct {
	ruleFields
	line     int
	items    []itemDef
	triggers []triggerDef
	others   []bodyDef
}

type triggerFields struct {
	uuid, name, eventName, opdata string
	expression, recovery          string
	recoveryMode                  model.RecoveryMode
	severity                      model.Severity
	enabled, multiple, manual     bool
	comments, url, tags, extra    string
}

type triggerDef struct {
	triggerFields
	line    int
	depends []dependDef
}

// dependDef names another trigger as exports do.
type dependDef struct {
	name, expression, recovery string
	line                       int
}

// The names of exports for model's numbers. A name that several versions spell differently stands once for each.
var (
	itemTypes = map[string]model.ItemType{
		"ZABBIX_PASSIVE": model.PassiveAgent, "TRAP": model.Trapper, "SIMPLE": model.SimpleCheck,
		"INTERNAL": model.Internal, "ZABBIX_ACTIVE": model.ActiveAgent, "EXTERNAL": model.External,
		"ODBC": model.Database, "IPMI": model.IPMI, "SSH": model.SSH, "TELNET": model.Telnet,
		"CALCULATED": model.Calculated, "JMX": model.JMX, "SNMP_TRAP": model.SNMPTrap, "DEPENDENT": model.Dependent,
		"HTTP_AGENT": model.HTTPAgent, "SNMP_AGENT": model.SNMPAgent, "SCRIPT": model.Script,
		"ITEM_TYPE_SCRIPT": model.Script, "ITEM_TYPE_BROWSER": browserItem, "BROWSER": browserItem,
	}
	valueTypes = map[string]model.ValueType{
		"FLOAT": model.Float, "CHAR": model.Character, "LOG": model.LogEntry, "UNSIGNED": model.Uint,
		"TEXT": model.Text, "BINARY": model.Binary,
	}
	stepTypes = map[string]model.StepType{
		"MULTIPLIER": model.StepMultiplier, "RTRIM": model.StepRightTrim, "LTRIM": model.StepLeftTrim,
		"TRIM": model.StepTrim, "REGEX": model.StepRegex, "BOOL_TO_DECIMAL": model.StepBoolToDecimal,
		"OCTAL_TO_DECIMAL": model.StepOctalToDecimal, "HEX_TO_DECIMAL": model.StepHexToDecimal,
		"SIMPLE_CHANGE": model.StepSimpleChange, "CHANGE_PER_SECOND": model.StepChangePerSecond,
		"XMLPATH": model.StepXMLPath, "JSONPATH": model.StepJSONPath, "IN_RANGE": model.StepInRange,
		"MATCHES_REGEX": model.StepMatchesRegex, "NOT_MATCHES_REGEX": model.StepNotMatchesRegex,
		"CHECK_JSON_ERROR": model.StepCheckJSONError, "CHECK_XML_ERROR": model.StepCheckXMLError,
		"CHECK_REGEX_ERROR": model.StepCheckRegexError, "DISCARD_UNCHANGED": model.StepDiscardUnchanged,
		"DISCARD_UNCHANGED_HEARTBEAT": model.StepDiscardHeartbeat, "JAVASCRIPT": model.StepJavaScript,
		"PROMETHEUS_PATTERN": model.StepPrometheusPattern, "PROMETHEUS_TO_JSON": model.StepPrometheusToJSON,
		"CSV_TO_JSON": model.StepCSVToJSON, "STR_REPLACE": model.StepReplace,
		"CHECK_NOT_SUPPORTED": model.StepCheckUnsupported, "XML_TO_JSON": model.StepXMLToJSON,
		"SNMP_WALK_VALUE": model.StepSNMPWalkValue, "SNMP_WALK_TO_JSON": model.StepSNMPWalkToJSON,
		"SNMP_GET_VALUE": model.StepSNMPGetValue,
	}
	failActions = map[string]model.OnFail{
		"ORIGINAL_ERROR": model.FailUnsupported, "DISCARD_VALUE": model.FailDiscard,
		"CUSTOM_VALUE": model.FailSetValue, "CUSTOM_ERROR": model.FailSetError,
	}
	severities = map[string]model.Severity{
		"NOT_CLASSIFIED": model.NotClassified, "INFO": model.Information, "WARNING": model.Warning,
		"AVERAGE": model.Average, "HIGH": model.High, "DISASTER": model.Disaster,
	}
	recoveryModes = map[string]model.RecoveryMode{
		"EXPRESSION": model.RecoverByExpression, "RECOVERY_EXPRESSION": model.RecoverByRecoveryExpression,
		"NONE": model.RecoverNever,
	}
	enabledNames = map[string]bool{"ENABLED": true, "DISABLED": false}
	yesNames     = map[string]bool{"NO": false, "YES": true}
	multipleName = map[string]bool{"SINGLE": false, "MULTIPLE": true}
)

// browserItem is 7.0's browser item; Zabbix's number.
const browserItem model.ItemType = 22
