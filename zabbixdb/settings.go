package zabbixdb

import (
	"context"
	"encoding/json"
	"net"
)

// Settings are what a Zabbix server has besides hosts and templates: who may do what, who is told, and how connections are protected.
// They have passwords' hashes and keys in them.
type Settings struct {
	Proxies []Proxy `json:"proxies"`
	// Hosts are those whose connections are protected; an empty name stands for agents that register themselves.
	Hosts []HostTLS `json:"hosts"`
	// MediaTypes is a Zabbix export of the media types that are used.
	MediaTypes json.RawMessage `json:"media_types,omitempty"`
	// Alerting is the receivers, maintenances and actions in the form of alerting files.
	Alerting   json.RawMessage `json:"alerting,omitempty"`
	UserGroups []UserGroup     `json:"user_groups"`
	Users      []User          `json:"users"`
	Remarks    []Remark        `json:"remarks"`
}

// Remark is what is to be known of one object.
type Remark struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// TLS is how connections are protected: numbers as in Zabbix, 1 unencrypted, 2 pre-shared key, 4 certificate.
type TLS struct {
	Connect  int    `json:"connect"`
	Accept   int    `json:"accept"`
	Identity string `json:"identity,omitempty"`
	// Key is in hexadecimal digits.
	Key     string `json:"key,omitempty"`
	Issuer  string `json:"issuer,omitempty"`
	Subject string `json:"subject,omitempty"`
}

// HostTLS is that of a host.
type HostTLS struct {
	Host string `json:"host"`
	TLS  TLS    `json:"tls"`
}

// Proxy is a proxy.
type Proxy struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// Address is where the server asks a passive one, host:port.
	Address string `json:"address,omitempty"`
	TLS     TLS    `json:"tls"`
}

// Settings reads them. What cannot be taken is counted; see Left.
func (s *Source) Settings(ctx context.Context) (*Settings, error) {
	out := &Settings{Proxies: []Proxy{}, Hosts: []HostTLS{}, UserGroups: []UserGroup{}, Users: []User{}, Remarks: []Remark{}}
	s.begins("reading people and alerting")
	for _, read := range []func(context.Context, *Settings) error{s.proxiesAndKeys, s.people, s.alerting} {
		if err := read(ctx, out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (o *Settings) remark(path, reason string) {
	o.Remarks = append(o.Remarks, Remark{path, reason})
}

func tlsOf(r row) TLS {
	return TLS{
		Connect: r.num("tls_connect"), Accept: r.num("tls_accept"), Identity: r["tls_psk_identity"], Key: r["tls_psk"],
		Issuer: r["tls_issuer"], Subject: r["tls_subject"],
	}
}

const unencrypted = 1

// proxiesAndKeys reads proxies and how connections are protected.
func (s *Source) proxiesAndKeys(ctx context.Context, out *Settings) error {
	query := "SELECT h.*, h.host AS proxyname, CASE WHEN h.status = 6 THEN 1 ELSE 0 END AS passive, CASE WHEN i.useip = 1 THEN i.ip ELSE i.dns END AS askat, i.port AS askport " +
		"FROM hosts h LEFT JOIN interface i ON i.hostid = h.hostid AND h.status = 6 AND i.main = 1 WHERE h.status IN (5,6) ORDER BY h.hostid"
	if s.mandatory >= 7000000 {
		query = "SELECT p.*, p.name AS proxyname, p.operating_mode AS passive, p.address AS askat, p.port AS askport FROM proxy p ORDER BY p.proxyid"
	}
	err := s.each(ctx, query, func(r row) error {
		p := Proxy{Name: r["proxyname"], Description: r["description"], TLS: tlsOf(r)}
		if r["passive"] == "1" {
			if r["askat"] == "" || r["askport"] == "" {
				s.leave("passive proxies", 1, "where they are asked is missing; make them known with 'tidemark proxies add NAME --address HOST:PORT'")
				return nil
			}
			p.Address = net.JoinHostPort(r["askat"], r["askport"])
			p.TLS.Accept = p.TLS.Connect // it never connects by itself
		} else {
			p.TLS.Connect = unencrypted // the server never connects
		}
		out.Proxies = append(out.Proxies, p)
		return nil
	})
	if err != nil {
		return err
	}
	err = s.each(ctx, "SELECT * FROM hosts WHERE status IN (0,1) AND flags IN (0,4) AND (tls_connect <> 1 OR tls_accept <> 1) ORDER BY hostid", func(r row) error {
		out.Hosts = append(out.Hosts, HostTLS{Host: r["host"], TLS: tlsOf(r)})
		return nil
	})
	if err != nil {
		return err
	}
	return s.each(ctx, `SELECT 1 AS tls_connect, c.autoreg_tls_accept AS tls_accept, a.tls_psk_identity, a.tls_psk FROM config c, config_autoreg_tls a
		WHERE c.autoreg_tls_accept <> 1`, func(r row) error {
		out.Hosts = append(out.Hosts, HostTLS{TLS: tlsOf(r)})
		return nil
	})
}
