package snmp

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/gosnmp/gosnmp"
)

// dynamicKey is a dynamic index.
type dynamicKey struct{ address, index, value string }

// each walks a subtree. A device whose OIDs do not rise is not walked for ever: the library ends with an error.
func (c *Checker) each(s *session, root string, fn func(*gosnmp.SnmpPDU) error) error {
	count := 0
	visit := func(pdu gosnmp.SnmpPDU) error {
		if count++; count > maxVariables {
			return refusef("the walk has more than %d variables", maxVariables)
		}
		return fn(&pdu)
	}
	if s.Version == gosnmp.Version1 || s.key.access.Single {
		return s.Walk(root, visit)
	}
	return s.BulkWalk(root, visit)
}

// walkText is subtrees as text, in the form of net-snmp.
func (c *Checker) walkText(s *session, roots []string) ([]byte, error) {
	out := []byte{}
	for _, root := range roots {
		err := c.each(s, root, func(pdu *gosnmp.SnmpPDU) error {
			if out = appendLine(out, pdu); len(out) > maxWalkBytes {
				return refusef("the walk has more than %d bytes", maxWalkBytes)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if len(out) == 0 {
		return nil, refusef("the device has nothing at %s", strings.Join(roots, ", "))
	}
	return bytes.TrimSuffix(out, []byte("\n")), nil
}

// discover is the rows of tables as JSON: one object for each index that one of the columns has.
func (c *Checker) discover(s *session, q *query) ([]byte, error) {
	rows := make(map[string]map[string]string)
	var order []string
	size := 0
	for i, root := range q.oids {
		err := c.each(s, root, func(pdu *gosnmp.SnmpPDU) error {
			index, ok := strings.CutPrefix(pdu.Name, root+".")
			if !ok {
				return nil
			}
			row := rows[index]
			if row == nil {
				row = map[string]string{"{#SNMPINDEX}": index}
				rows[index] = row
				order = append(order, index)
			}
			text, fault := plainValue(pdu)
			if size += len(index) + len(text); size > maxWalkBytes {
				return refusef("the tables have more than %d bytes", maxWalkBytes)
			}
			if fault == "" {
				row[q.macros[i]] = string(text)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(order, compareOIDs)
	list := make([]map[string]string, len(order))
	for i, index := range order {
		list[i] = rows[index]
	}
	return json.Marshal(list)
}

// compareOIDs orders indexes by their numbers.
func compareOIDs(a, b string) int {
	for a != "" || b != "" {
		var x, y string
		x, a, _ = strings.Cut(a, ".")
		y, b, _ = strings.Cut(b, ".")
		m, _ := strconv.ParseUint(x, 10, 64)
		n, _ := strconv.ParseUint(y, 10, 64)
		switch {
		case x == "" || m < n && y != "":
			return -1
		case y == "" || m > n:
			return 1
		}
	}
	return 0
}

// dynamic asks for the variable of the row whose column index has a value. Where it was found last is looked at first.
func (c *Checker) dynamic(s *session, q *query) ([]byte, error) {
	key := dynamicKey{s.key.address, q.index, q.value}
	c.mu.Lock()
	last := c.indexes[key]
	c.mu.Unlock()
	if last != "" {
		pair := []variable{{oid: q.index + "." + last}, {oid: q.oids[0] + "." + last}}
		if err := c.get(s, pair); err != nil {
			return nil, err
		}
		if at := pair[0].result(); string(at.Text) == q.value && pair[0].fault == "" {
			return valueOf(&pair[1])
		}
	}
	found := ""
	errFound := errors.New("found")
	err := c.each(s, q.index, func(pdu *gosnmp.SnmpPDU) error {
		if text, fault := plainValue(pdu); fault == "" && string(text) == q.value {
			found = strings.TrimPrefix(pdu.Name, q.index+".")
			return errFound
		}
		return nil
	})
	if err != nil && !errors.Is(err, errFound) {
		return nil, err
	}
	if found == "" {
		return nil, refusef("no row of %s has the value %q", q.index, shorten(q.value))
	}
	c.mu.Lock()
	if len(c.indexes) >= maxLearned {
		clear(c.indexes)
	}
	c.indexes[key] = found
	c.mu.Unlock()
	one := []variable{{oid: q.oids[0] + "." + found}}
	if err := c.get(s, one); err != nil {
		return nil, err
	}
	return valueOf(&one[0])
}

func valueOf(v *variable) ([]byte, error) {
	if v.fault != "" {
		return nil, &refusal{v.fault}
	}
	text, fault := plainValue(&v.pdu)
	if fault != "" {
		return nil, &refusal{fault}
	}
	return text, nil
}
