package model

import (
	"fmt"
	"regexp"
	"strings"
)

// GlobalRegexp is a global regular expression: where a pattern is wanted, @ and its name stand for it. A text fits when all of its expressions
// say so.
type GlobalRegexp struct {
	Name string `json:"name"`
	// Test is a text that people try it with; it means nothing else.
	Test        string             `json:"test_string,omitempty"`
	Expressions []GlobalExpression `json:"expressions"`
}

// GlobalExpression is one expression of a GlobalRegexp.
type GlobalExpression struct {
	Expression string `json:"expression"`
	// Type is one of the constants below.
	Type string `json:"expression_type"`
	// Delimiter is between the texts of AnyIncluded; one of , . /
	Delimiter     string `json:"exp_delimiter,omitempty"`
	CaseSensitive bool   `json:"case_sensitive,omitempty"`
}

// The types of expressions, in the order of Zabbix's numbers.
const (
	Included    = "included"
	AnyIncluded = "any_included"
	NotIncluded = "not_included"
	ResultTrue  = "result_true"
	ResultFalse = "result_false"
)

// ExpressionTypes are the types by Zabbix's numbers.
var ExpressionTypes = []string{Included, AnyIncluded, NotIncluded, ResultTrue, ResultFalse}

// Limits of global regular expressions.
const (
	MaxRegexpNameBytes = 128
	MaxExpressions     = 100
	MaxExpressionBytes = 2048
)

// Check reports what is wrong besides the syntax of patterns.
func (g *GlobalRegexp) Check() error {
	switch {
	case g.Name == "" || len(g.Name) > MaxRegexpNameBytes || strings.ContainsAny(g.Name, "\"\\/@"):
		return fmt.Errorf("the name %.150q has %d bytes, expected 1 to %d and none of \" \\ / @", g.Name, len(g.Name), MaxRegexpNameBytes)
	case len(g.Expressions) == 0 || len(g.Expressions) > MaxExpressions:
		return fmt.Errorf("%d expressions, expected 1 to %d", len(g.Expressions), MaxExpressions)
	case len(g.Test) > 64<<10:
		return fmt.Errorf("the test string has %d bytes, expected at most %d", len(g.Test), 64<<10)
	}
	for i := range g.Expressions {
		e := &g.Expressions[i]
		switch {
		case e.Expression == "" || len(e.Expression) > MaxExpressionBytes:
			return fmt.Errorf("expression %d has %d bytes, expected 1 to %d", i+1, len(e.Expression), MaxExpressionBytes)
		case e.number() < 0:
			return fmt.Errorf("expression %d is of type %.40q, expected included, any_included, not_included, result_true or result_false", i+1, e.Type)
		case e.Type == AnyIncluded && e.Delimiter != "," && e.Delimiter != "." && e.Delimiter != "/":
			return fmt.Errorf("expression %d has the delimiter %.10q, expected one of , . /", i+1, e.Delimiter)
		}
	}
	return nil
}

func (e *GlobalExpression) number() int {
	for i, name := range ExpressionTypes {
		if name == e.Type {
			return i
		}
	}
	return -1
}

// Number is the type as Zabbix's protocols have it.
func (e *GlobalExpression) Number() int { return max(e.number(), 0) }

// Pattern is the expression as one pattern, and whether a text fits where it is found; else where it is not.
func (e *GlobalExpression) Pattern() (pattern string, found bool) {
	switch e.Type {
	case Included, NotIncluded:
		pattern = regexp.QuoteMeta(e.Expression)
	case AnyIncluded:
		var parts []string
		for part := range strings.SplitSeq(e.Expression, e.Delimiter) {
			parts = append(parts, regexp.QuoteMeta(part))
		}
		pattern = strings.Join(parts, "|")
	default:
		pattern = e.Expression
	}
	flags := "(?i:"
	if e.CaseSensitive {
		flags = "(?-i:"
	}
	return flags + pattern + ")", e.Type != NotIncluded && e.Type != ResultFalse
}

// Pattern is the whole as one pattern of PCRE. One that must be found alone stays simple, so that it is matched in linear time.
func (g *GlobalRegexp) Pattern() string {
	if len(g.Expressions) == 1 {
		if pattern, found := g.Expressions[0].Pattern(); found {
			return pattern
		}
	}
	var b strings.Builder
	b.WriteString(`\A`)
	for i := range g.Expressions {
		pattern, found := g.Expressions[i].Pattern()
		if found {
			b.WriteString(`(?=[\s\S]*?`)
		} else {
			b.WriteString(`(?![\s\S]*?`)
		}
		b.WriteString(pattern + ")")
	}
	return b.String()
}

// DefaultRegexps are the global regular expressions that a new Zabbix has. One's own of the same name go before them.
func DefaultRegexps() []GlobalRegexp {
	one := func(name, test, kind string, patterns ...string) GlobalRegexp {
		g := GlobalRegexp{Name: name, Test: test}
		for _, p := range patterns {
			g.Expressions = append(g.Expressions, GlobalExpression{Expression: p, Type: kind, CaseSensitive: true})
		}
		return g
	}
	return []GlobalRegexp{
		one("File systems for discovery", "ext3", ResultTrue, "^(btrfs|ext2|ext3|ext4|reiser|xfs|ffs|ufs|jfs|jfs2|vxfs|hfs|apfs|refs|ntfs|fat32|zfs)$"),
		one("Network interfaces for discovery", "eth0", ResultFalse,
			"^Software Loopback Interface", "^(In)?[Ll]oop[Bb]ack[0-9._]*$", "^NULL[0-9.]*$", "^[Ll]o[0-9.]*$", "^[Ss]ystem$", "^Nu[0-9.]*$"),
		one("Storage devices for SNMP discovery", "/boot", ResultFalse, "^(Physical memory|Virtual memory|Memory buffers|Cached memory|Swap space)$"),
		one("Windows service names for discovery", "SysmonLog", ResultFalse, `^(MMCSS|gupdate|SysmonLog|clr_optimization_v.+|sppsvc|gpsvc|Pml Driver HPZ12|Net Driver HPZ12|MapsBroker|IntelAudioService|Intel\(R\) TPM Provisioning Service|dbupdate|DoSvc|CDPUserSvc_.+|WpnUserService_.+|OneSyncSvc_.+|WbioSrvc|BITS|tiledatamodelsvc|GISvc|ShellHWDetection|TrustedInstaller|TabletInputService|CDPSvc|wuauserv|edgeupdate|cbdhsvc_.+)$`),
		one("Windows service startup states for discovery", "automatic", ResultTrue, "^(automatic|automatic delayed)$"),
	}
}
