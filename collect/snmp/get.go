package snmp

import (
	"errors"
	"slices"
	"strings"

	"github.com/gosnmp/gosnmp"

	"tidemark/collect/poller"
	"tidemark/model"
)

// variable is one that is asked for.
type variable struct {
	oid  string
	task int
	// pdu is the answer; fault is set instead when there is none.
	pdu   gosnmp.SnmpPDU
	fault string
}

func (v *variable) result() poller.Result {
	if v.fault != "" {
		return poller.Result{Outcome: poller.NotSupported, Text: []byte(v.fault)}
	}
	text, fault := plainValue(&v.pdu)
	if fault != "" {
		return poller.Result{Outcome: poller.NotSupported, Text: []byte(fault)}
	}
	return poller.Result{Outcome: poller.Value, Text: text}
}

// size is how many variables the device of a session is asked for at once.
func (c *Checker) size(s *session) int { return c.sizeOf(s.key.address, &s.key.access) }

func (c *Checker) sizeOf(address string, access *model.SNMPAccess) int {
	if access.Single {
		return 1
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := c.sizes[address]; n > 0 {
		return n
	}
	return maxBatch
}

func (c *Checker) learn(s *session, size int) {
	c.halved.Inc()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.sizes) >= maxLearned {
		clear(c.sizes)
	}
	c.sizes[s.key.address] = size
}

// get asks for variables, as many at once as the device answers. An error is one of the device.
func (c *Checker) get(s *session, list []variable) error {
	answered := false
	for len(list) > 0 {
		n := min(c.size(s), len(list))
		err := c.getOnce(s, list[:n])
		s.Retries = retries
		switch {
		case err == nil:
			answered = true
			list = list[n:]
		case n > 1 && (errors.Is(err, errTooBig) || isTimeout(err)):
			// Some devices do not answer at all when they are asked for too much. Whether it is that shows one variable.
			if !answered && isTimeout(err) {
				if err := c.getOnce(s, list[:1]); err != nil {
					return err
				}
				answered, list = true, list[1:]
			}
			c.learn(s, max(1, n/2))
		default:
			return err
		}
	}
	return nil
}

// errTooBig is for an answer that does not fit into a packet.
var errTooBig = errors.New("its answer does not fit into a packet")

// getOnce asks for variables in one request; of version 1, which fails as a whole for one unknown variable, again without those.
func (c *Checker) getOnce(s *session, list []variable) error {
	open := make([]*variable, 0, len(list))
	for i := range list {
		open = append(open, &list[i])
	}
	for len(open) > 0 {
		oids := make([]string, len(open))
		for i, v := range open {
			oids[i] = v.oid
		}
		packet, err := s.Get(oids)
		if err != nil {
			return err
		}
		switch packet.Error {
		case gosnmp.NoError:
			return match(open, packet.Variables)
		case gosnmp.TooBig:
			if len(open) == 1 {
				open[0].fault = "the device says that its answer does not fit into a packet"
				return nil
			}
			return errTooBig
		case gosnmp.NoSuchName, gosnmp.GenErr, gosnmp.NoAccess, gosnmp.AuthorizationError, gosnmp.ResourceUnavailable:
			at := int(packet.ErrorIndex) - 1
			if at < 0 || at >= len(open) {
				if len(open) > 1 {
					return errTooBig // One by one it shows which.
				}
				at = 0
			}
			open[at].fault = "the device refuses " + open[at].oid + ": " + reason(packet.Error)
			open = slices.Delete(open, at, at+1)
		default:
			return errors.New("it answers with error " + packet.Error.String())
		}
	}
	return nil
}

func reason(e gosnmp.SNMPError) string {
	switch e {
	case gosnmp.NoSuchName:
		return "no such name"
	case gosnmp.NoAccess, gosnmp.AuthorizationError:
		return "no access"
	}
	return e.String()
}

// match gives the answers to the variables: by place, which is their order in every answer, checked by name.
func match(open []*variable, answers []gosnmp.SnmpPDU) error {
	if len(answers) != len(open) {
		return errors.New("it answers with another number of variables than it was asked for")
	}
	for i, v := range open {
		if strings.TrimPrefix(answers[i].Name, ".") != v.oid[1:] {
			v.fault = "the device answers with " + answers[i].Name + " when it is asked for " + v.oid
			continue
		}
		v.pdu = answers[i]
	}
	return nil
}
