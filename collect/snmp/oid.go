package snmp

import (
	"strconv"
	"strings"

	"tidemark/expr"
)

// kind says how a query is made.
type kind uint8

const (
	get kind = iota
	walk
	discovery
	dynamic
)

// query is what an item asks for.
type query struct {
	kind kind
	// oids begin with a dot.
	oids []string
	// macros are the names of discovery, one for each OID.
	macros []string
	// index and value are, for a dynamic index, the column that is searched and what is looked for.
	index, value string
}

const (
	// maxOIDs bounds the OIDs of one item, maxOIDBytes one of them.
	maxOIDs     = 128
	maxOIDBytes = 1024
)

// parseOID reads what an item asks for: an OID, get[OID], walk[OID,…], discovery[{#MACRO},OID,…], or OID["index","OID","value"].
func parseOID(text string) (query, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return query{}, refusef("the item has no SNMP OID")
	}
	name, params := expr.SplitKey(text)
	switch {
	case params == nil:
		oid, err := cleanOID(text)
		return query{kind: get, oids: []string{oid}}, err
	case len(params) > 2*maxOIDs:
		return query{}, refusef("%d parameters; at most %d OIDs are taken", len(params), maxOIDs)
	case name == "get" && len(params) == 1:
		oid, err := cleanOID(params[0])
		return query{kind: get, oids: []string{oid}}, err
	case name == "walk":
		q := query{kind: walk}
		for _, p := range params {
			oid, err := cleanOID(p)
			if err != nil {
				return q, err
			}
			q.oids = append(q.oids, oid)
		}
		return q, nil
	case name == "discovery":
		return parseDiscovery(params)
	case len(params) == 3 && params[0] == "index":
		base, err := cleanOID(name)
		if err != nil {
			return query{}, err
		}
		index, err := cleanOID(params[1])
		return query{kind: dynamic, oids: []string{base}, index: index, value: params[2]}, err
	}
	return query{}, refusef(`SNMP OID %q; expected an OID, get[OID], walk[OID,…], discovery[{#MACRO},OID,…] or OID["index","OID","value"]`, shorten(text))
}

func parseDiscovery(params []string) (query, error) {
	q := query{kind: discovery}
	if len(params)%2 != 0 {
		return q, refusef("discovery[…] has %d parameters; expected pairs of a macro and an OID", len(params))
	}
	for i := 0; i < len(params); i += 2 {
		m := params[i]
		if !strings.HasPrefix(m, "{#") || !strings.HasSuffix(m, "}") || len(m) < 4 {
			return q, refusef("discovery[…] has %q; expected a macro such as {#IFNAME}", shorten(m))
		}
		oid, err := cleanOID(params[i+1])
		if err != nil {
			return q, err
		}
		q.macros, q.oids = append(q.macros, m), append(q.oids, oid)
	}
	return q, nil
}

// cleanOID gives an OID a dot at its start and none at its end, and checks its numbers.
func cleanOID(text string) (string, error) {
	oid := "." + strings.Trim(strings.TrimSpace(text), ".")
	if len(oid) > maxOIDBytes || len(oid) < 2 {
		return "", refusef("%q is no OID; expected numbers such as .1.3.6.1.2.1.1.5.0", shorten(text))
	}
	for part := range strings.SplitSeq(oid[1:], ".") {
		if _, err := strconv.ParseUint(part, 10, 32); err != nil {
			return "", refusef("%q is no OID; expected numbers such as .1.3.6.1.2.1.1.5.0 (names of MIBs are not read)", shorten(text))
		}
	}
	return oid, nil
}

func shorten(text string) string {
	if len(text) > 100 {
		return text[:100] + "…"
	}
	return text
}
