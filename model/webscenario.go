package model

import (
	"strings"
	"time"
)

// WebScenario is a web scenario: requests that are made one after another, as a person would open pages.
type WebScenario struct {
	Name string
	// Agent is the value of the header User-Agent; Proxy as in an HTTPRequest.
	Agent, Proxy string
	// Attempts is how often a step is tried that gets no answer.
	Attempts int
	// Variables are texts, or "regex:…", "jsonpath:…" and "xmlxpath:…", which are looked for in each answer. Names have their braces.
	Variables, Headers []Pair
	// AuthType is NONE, BASIC, DIGEST, NTLM or KERBEROS.
	AuthType, Username, Password   string
	CertFile, KeyFile, KeyPassword string
	VerifyPeer, VerifyHost         bool
	Steps                          []WebStep
}

// WebStep is one request of a web scenario.
type WebStep struct {
	Name, URL string
	// Query is added to the URL; Form, if there is any, is sent instead of Posts.
	Query, Form        []Pair
	Posts              string
	Variables, Headers []Pair
	FollowRedirects    bool
	// Retrieve is BODY, HEADERS or BOTH.
	Retrieve string
	// TimeoutText is the time limit as configured, Timeout what it says.
	TimeoutText string
	Timeout     time.Duration
	// Required is a regular expression that the answer must match, StatusCodes what its status must be in; empty for no matter.
	Required, StatusCodes string
}

// WebScenarioKey is the key of the item that runs a web scenario.
func WebScenarioKey(name string) string { return "web.test[" + QuoteKeyParam(name) + "]" }

// QuoteKeyParam quotes a parameter of an item key where it must be, as Zabbix does.
func QuoteKeyParam(s string) string {
	if s != "" && s[0] != '"' && s[0] != ' ' && s[0] != '[' && !strings.ContainsAny(s, ",]") {
		return s
	}
	return `"` + strings.ReplaceAll(s, `"`, `\"`) + `"`
}
