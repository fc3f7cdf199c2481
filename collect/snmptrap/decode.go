package snmptrap

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"strings"

	"github.com/gosnmp/gosnmp"

	"tidemark/collect/snmp"
	"tidemark/model"
)

// decoder makes what decodes the traps of an interface.
func decoder(a *model.SNMPAccess) (*gosnmp.GoSNMP, error) {
	g := &gosnmp.GoSNMP{}
	if err := snmp.Configure(g, a); err != nil {
		return nil, err
	}
	if g.Version == gosnmp.Version3 {
		table := gosnmp.NewSnmpV3SecurityParametersTable(gosnmp.Logger{})
		if err := table.Add(a.SecurityName, g.SecurityParameters); err != nil {
			return nil, fmt.Errorf("SNMP version 3: %w", err)
		}
		g.SecurityParameters = nil
		g.SetTrapSecurityParametersTable(table)
	}
	return g, nil
}

// decode reads a trap with the credentials of a target.
func decode(t *target, data []byte) (trap *gosnmp.SnmpPacket, err error) {
	defer func() {
		if p := recover(); p != nil {
			trap, err = nil, fmt.Errorf("the packet broke the decoder: %v", p)
		}
	}()
	// The decoder works in place, and another target may want the bytes.
	trap, err = t.decoder.UnmarshalTrap(append([]byte{}, data...), false)
	if err != nil {
		return nil, err
	}
	switch trap.PDUType {
	case gosnmp.Trap, gosnmp.SNMPv2Trap, gosnmp.InformRequest:
	default:
		return nil, fmt.Errorf("a packet of type %s is no trap", trap.PDUType)
	}
	// An interface of version 1 or 2 takes the traps of both: many devices send version 1 whatever they are asked with.
	third := trap.Version == gosnmp.Version3
	switch {
	case third != (t.Access.Version == "SNMPV3"):
		return nil, errors.New("the trap is of another version than the interface")
	case !third && subtle.ConstantTimeCompare([]byte(trap.Community), []byte(t.Access.Community)) != 1:
		return nil, errors.New("the community is not that of the interface")
	case third && trap.MsgFlags&gosnmp.AuthPriv < wanted(&t.Access):
		return nil, errors.New("the trap is less protected than the interface asks for")
	case len(trap.Variables) > maxVarbinds:
		return nil, fmt.Errorf("the trap has more than %d variables", maxVarbinds)
	}
	return trap, nil
}

func wanted(a *model.SNMPAccess) gosnmp.SnmpV3MsgFlags {
	switch a.SecurityLevel {
	case "AUTHPRIV":
		return gosnmp.AuthPriv
	case "AUTHNOPRIV":
		return gosnmp.AuthNoPriv
	}
	return gosnmp.NoAuthNoPriv
}

// describe writes a trap as Zabbix's receivers do, OIDs as numbers.
func describe(trap *gosnmp.SnmpPacket, p packet) string {
	var b strings.Builder
	kind := "TRAP"
	if trap.PDUType == gosnmp.InformRequest {
		kind = "INFORM"
	}
	version := map[gosnmp.SnmpVersion]string{gosnmp.Version1: "1", gosnmp.Version2c: "2c", gosnmp.Version3: "3"}[trap.Version]
	fmt.Fprintf(&b, "%s ZBXTRAP %s\nPDU INFO:\n", p.at.Format("15:04:05 2006/01/02"), p.from.Addr())
	line := func(name string, value any) { fmt.Fprintf(&b, "  %-30s %v\n", name, value) }
	line("notificationtype", kind)
	line("version", version)
	line("receivedfrom", fmt.Sprintf("UDP: [%s]:%d", p.from.Addr(), p.from.Port()))
	line("requestid", trap.RequestID)
	if trap.PDUType == gosnmp.Trap {
		line("enterprise", trap.Enterprise)
		line("agentaddress", trap.AgentAddress)
		line("generictrap", trap.GenericTrap)
		line("specifictrap", trap.SpecificTrap)
		line("timestamp", trap.Timestamp)
	}
	b.WriteString("VARBINDS:\n")
	for i := range trap.Variables {
		v := &trap.Variables[i]
		fmt.Fprintf(&b, "  %-30s type=%-3d value=%s\n", v.Name, byte(v.Type), snmp.FormatValue(v))
		if b.Len() > maxTextBytes {
			break
		}
	}
	return b.String()[:min(b.Len(), maxTextBytes)]
}
