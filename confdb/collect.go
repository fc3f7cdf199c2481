package confdb

import (
	"cmp"
	"encoding/json"
	"fmt"

	"tidemark/model"
)

// itemExtras are the fields of an item's column extra that some part of the program reads, as exports name them.
type itemExtras struct {
	Params string `json:"params"`
	Master struct {
		Key string `json:"key"`
	} `json:"master_item"`
	AllowedHosts    string       `json:"allowed_hosts"`
	AllowTraps      string       `json:"allow_traps"`
	InterfaceRef    string       `json:"interface_ref"`
	Timeout         string       `json:"timeout"`
	AuthType        string       `json:"authtype"`
	Username        string       `json:"username"`
	Password        string       `json:"password"`
	PublicKey       string       `json:"publickey"`
	PrivateKey      string       `json:"privatekey"`
	SNMPOID         string       `json:"snmp_oid"`
	IPMISensor      string       `json:"ipmi_sensor"`
	JMXEndpoint     string       `json:"jmx_endpoint"`
	Parameters      []packedPair `json:"parameters"`
	URL             string       `json:"url"`
	QueryFields     []packedPair `json:"query_fields"`
	Headers         []packedPair `json:"headers"`
	Method          string       `json:"request_method"`
	PostType        string       `json:"post_type"`
	Posts           string       `json:"posts"`
	StatusCodes     string       `json:"status_codes"`
	FollowRedirects string       `json:"follow_redirects"`
	Retrieve        string       `json:"retrieve_mode"`
	Output          string       `json:"output_format"`
	Proxy           string       `json:"http_proxy"`
	CertFile        string       `json:"ssl_cert_file"`
	KeyFile         string       `json:"ssl_key_file"`
	KeyPassword     string       `json:"ssl_key_password"`
	VerifyPeer      string       `json:"verify_peer"`
	VerifyHost      string       `json:"verify_host"`
	// Web is not of exports: decodeweb.go wrote it.
	Web *model.WebScenario `json:"web"`
}

type packedPair struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

func pairs(list []packedPair) []model.Pair {
	var out []model.Pair
	for _, p := range list {
		out = append(out, model.Pair(p))
	}
	return out
}

// collect is what collectors need of an item of a type; nil for nothing.
func (e *itemExtras) collect(kind model.ItemType) *model.Collect {
	c := model.Collect{InterfaceRef: e.InterfaceRef}
	switch kind {
	case model.HTTPAgent:
		c.AuthType, c.Username, c.Password, c.HTTP = e.AuthType, e.Username, e.Password, e.request()
	case model.SNMPAgent:
		c.SNMPOID = e.SNMPOID
	case model.IPMI:
		c.IPMISensor = e.IPMISensor
	case model.JMX:
		c.JMXEndpoint, c.Username, c.Password = e.JMXEndpoint, e.Username, e.Password
	case model.SSH, model.Telnet, model.Database, model.SimpleCheck:
		c.AuthType, c.Username, c.Password, c.PublicKey, c.PrivateKey = e.AuthType, e.Username, e.Password, e.PublicKey, e.PrivateKey
	case model.WebTest:
		c.Web = e.Web
		return &c
	case model.Script:
		c.Parameters = pairs(e.Parameters)
		return &c
	}
	if c.InterfaceRef+c.AuthType+c.Username+c.Password+c.SNMPOID+c.IPMISensor+c.JMXEndpoint == "" && c.HTTP == nil {
		return nil
	}
	return &c
}

func (e *itemExtras) request() *model.HTTPRequest {
	return &model.HTTPRequest{
		URL: e.URL, Query: pairs(e.QueryFields), Headers: pairs(e.Headers), Method: cmp.Or(e.Method, "GET"), PostType: cmp.Or(e.PostType, "RAW"),
		Posts: e.Posts, StatusCodes: e.StatusCodes, FollowRedirects: e.FollowRedirects != "NO", Retrieve: cmp.Or(e.Retrieve, "BODY"),
		OutputJSON: e.Output == "JSON", Proxy: e.Proxy, CertFile: e.CertFile, KeyFile: e.KeyFile, KeyPassword: e.KeyPassword,
		VerifyPeer: e.VerifyPeer == "YES", VerifyHost: e.VerifyHost == "YES",
	}
}

// unpackIPMI reads how a host's management controllers are logged in to.
func unpackIPMI(text string) (*model.IPMIAccess, error) {
	if text == "" {
		return nil, nil
	}
	var extra struct {
		AuthType  string `json:"ipmi_authtype"`
		Privilege string `json:"ipmi_privilege"`
		Username  string `json:"ipmi_username"`
		Password  string `json:"ipmi_password"`
	}
	if err := json.Unmarshal([]byte(text), &extra); err != nil {
		return nil, fmt.Errorf("column extra: %w", err)
	}
	a := model.IPMIAccess(extra)
	if a == (model.IPMIAccess{}) {
		return nil, nil
	}
	return &a, nil
}
