package zbx

import (
	"cmp"
	"strconv"
	"time"

	"tidemark/model"
)

// Counts is what became of the values of a request.
type Counts struct{ Processed, Failed, Total uint64 }

// AppendInfo appends the line that senders and agents read: "processed: N; failed: N; total: N; seconds spent: F" with
// six decimals.
func AppendInfo(dst []byte, c Counts, spent time.Duration) []byte {
	dst = append(dst, "processed: "...)
	dst = strconv.AppendUint(dst, c.Processed, 10)
	dst = append(dst, "; failed: "...)
	dst = strconv.AppendUint(dst, c.Failed, 10)
	dst = append(dst, "; total: "...)
	dst = strconv.AppendUint(dst, c.Total, 10)
	dst = append(dst, "; seconds spent: "...)
	return strconv.AppendFloat(dst, max(0, spent.Seconds()), 'f', 6, 64)
}

// AppendDataAnswer appends the answer to `sender data` and `agent data`.
func AppendDataAnswer(dst []byte, c Counts, spent time.Duration) []byte {
	dst = append(dst, `{"response":"success","info":"`...)
	dst = AppendInfo(dst, c, spent)
	return append(dst, `"}`...)
}

// AppendSuccess appends an answer of success with a text; without info when it is empty.
func AppendSuccess(dst []byte, info string) []byte { return appendResponse(dst, "success", info) }

// AppendFailed appends an answer of failure with its reason.
func AppendFailed(dst []byte, info string) []byte { return appendResponse(dst, "failed", info) }

// AppendPaused appends the answer that asks an agent to keep its values for now; nothing of the request was taken.
func AppendPaused(dst []byte) []byte {
	dst = appendResponse(dst, "failed", "data collection is paused: the history cache is nearly full")
	return append(dst[:len(dst)-1], uploadDisabled+"}"...)
}

// uploadDisabled is the member that asks agents from 7.0 to keep their values until an answer comes without it.
const uploadDisabled = `,"upload":"disabled"`

// AppendProxyAnswer appends the answer to `proxy data`: success or failed, and whether the proxy may send values.
func AppendProxyAnswer(dst []byte, response, info string, takes bool) []byte {
	dst = appendResponse(dst, response, info)
	upload := "enabled"
	if !takes {
		upload = "disabled"
	}
	return append(append(append(dst[:len(dst)-1], `,"upload":"`...), upload...), `"}`...)
}

// AppendProxySaid appends what a passive proxy says to its server: success or failed, with its version.
func AppendProxySaid(dst []byte, response, info, version string) []byte {
	dst = appendResponse(dst, response, info)
	return append(appendMember(dst[:len(dst)-1], "version", []byte(version)), '}')
}

// AppendRedeclare appends the answer that asks our own agent to send the request again with a declaration of every key
// in it. Nothing of the request was taken.
func AppendRedeclare(dst []byte, info string) []byte {
	dst = appendResponse(dst, "failed", info)
	return append(dst[:len(dst)-1], `,"redeclare":1}`...)
}

func appendResponse(dst []byte, response, info string) []byte {
	dst = append(dst, `{"response":"`...)
	dst = append(dst, response...)
	dst = append(dst, '"')
	if info != "" {
		dst = append(dst, `,"info":`...)
		dst = AppendString(dst, info)
	}
	return append(dst, '}')
}

// Check is one entry of an agent's list of active checks.
type Check struct {
	Key    string
	ItemID uint64
	// Delay is the interval as configured: "30s", "1m;…".
	Delay string
	// DelaySeconds is the simple part of the interval, for agents before 4.4.
	DelaySeconds int64
	// LastLogSize and MTime are how far a log was read.
	LastLogSize, MTime uint64
	// Timeout is for agents from 7.0; "" leaves it out.
	Timeout string
}

// CheckForm says what the entries of a list look like; it depends on the agent's version.
type CheckForm uint8

// The forms of a list of active checks.
const (
	// FormLegacy, before 4.4 and for agents that say no version: key and a delay in seconds, no itemid.
	FormLegacy CheckForm = iota
	// FormItemID, from 4.4: key, itemid and a delay as text.
	FormItemID
	// FormTimeout, from 7.0: as FormItemID with a timeout.
	FormTimeout
)

// FormOf returns the form for an agent that says this version.
func FormOf(version []byte) CheckForm {
	major, minor := parseVersion(version)
	switch {
	case major >= 7:
		return FormTimeout
	case major > 4 || major == 4 && minor >= 4:
		return FormItemID
	}
	return FormLegacy
}

func parseVersion(v []byte) (major, minor uint64) {
	part := [2]uint64{}
	i := 0
	for _, c := range v {
		if c == '.' {
			if i++; i == len(part) {
				break
			}
			continue
		}
		if c < '0' || c > '9' || part[i] > 1e6 {
			break
		}
		part[i] = part[i]*10 + uint64(c-'0')
	}
	return part[0], part[1]
}

// ChecksAnswer builds the answer to `active checks`: Begin, Add for each entry, End.
type ChecksAnswer struct {
	// Form is the form of the entries.
	Form CheckForm
	// Revision is sent when WithRevision is set, which agents from 6.4 understand.
	Revision     uint64
	WithRevision bool
	// Tidemark is the version of our extension, sent when not zero.
	Tidemark uint64
	// UploadDisabled asks agents from 7.0 to keep their values until they get an answer without it.
	UploadDisabled bool

	added bool
}

// Begin appends the head of the answer to dst.
func (a *ChecksAnswer) Begin(dst []byte) []byte {
	a.added = false
	dst = a.head(dst)
	if a.WithRevision {
		dst = append(dst, `,"config_revision":`...)
		dst = strconv.AppendUint(dst, a.Revision, 10)
	}
	return append(dst, `,"data":[`...)
}

// Unchanged appends the whole answer for an agent that has the newest list already.
func (a *ChecksAnswer) Unchanged(dst []byte) []byte { return append(a.head(dst), '}') }

func (a *ChecksAnswer) head(dst []byte) []byte {
	dst = append(dst, `{"response":"success"`...)
	if a.UploadDisabled {
		dst = append(dst, uploadDisabled...)
	}
	return appendNumber(dst, "tidemark", a.Tidemark)
}

// Add appends one entry. lastlogsize and mtime are always there, because old agents refuse a list without.
func (a *ChecksAnswer) Add(dst []byte, c *Check) []byte {
	if a.added {
		dst = append(dst, ',')
	}
	a.added = true
	dst = append(dst, `{"key":`...)
	dst = AppendString(dst, c.Key)
	if a.Form == FormLegacy {
		dst = append(dst, `,"delay":`...)
		dst = strconv.AppendInt(dst, c.DelaySeconds, 10)
	} else {
		dst = append(dst, `,"itemid":`...)
		dst = strconv.AppendUint(dst, c.ItemID, 10)
		dst = append(dst, `,"delay":`...)
		dst = AppendString(dst, c.Delay)
	}
	dst = append(dst, `,"lastlogsize":`...)
	dst = strconv.AppendUint(dst, c.LastLogSize, 10)
	dst = append(dst, `,"mtime":`...)
	dst = strconv.AppendUint(dst, c.MTime, 10)
	if a.Form == FormTimeout && c.Timeout != "" {
		dst = append(dst, `,"timeout":`...)
		dst = AppendString(dst, c.Timeout)
	}
	return append(dst, '}')
}

// End appends the end of the answer, with the global regular expressions that the keys name.
func (a *ChecksAnswer) End(dst []byte, regexps ...model.GlobalRegexp) []byte {
	dst = append(dst, ']')
	before := `,"regexp":[`
	for i := range regexps {
		for n := range regexps[i].Expressions {
			e := &regexps[i].Expressions[n]
			dst = append(append(dst, before...), `{"name":`...)
			dst = append(AppendString(dst, regexps[i].Name), `,"expression":`...)
			dst = append(AppendString(dst, e.Expression), `,"expression_type":`...)
			dst = append(strconv.AppendInt(dst, int64(e.Number()), 10), `,"exp_delimiter":`...)
			dst = append(AppendString(dst, cmp.Or(e.Delimiter, ",")), `,"case_sensitive":`...)
			sensitive := byte('0')
			if e.CaseSensitive {
				sensitive = '1'
			}
			dst = append(dst, sensitive, '}')
			before = ","
		}
	}
	if before == "," {
		dst = append(dst, ']')
	}
	return append(dst, '}')
}

// Answer is what a server said, as a client reads it.
type Answer struct {
	// Success is whether `response` was "success".
	Success bool
	Info    string
	// Counts are read from Info; HasCounts says whether it had them.
	Counts    Counts
	HasCounts bool
	// Redeclare asks our own agent to send the request again with declarations.
	Redeclare bool
	// Tidemark is the version of our extension that the server speaks; zero for none.
	Tidemark uint64
	// ConfigRevision is the revision of the list in Checks.
	ConfigRevision uint64
	// HasChecks is whether there was a list; without one the agent keeps what it has.
	HasChecks bool
	Checks    []Check
	// UploadDisabled asks the agent to keep its values for now.
	UploadDisabled bool
	// Tasks are what a server asks of a proxy besides, as JSON text in the body, nil when absent; see DecodeTasks.
	Tasks []byte
}

// MaxChecks bounds the list of active checks that a client reads.
const MaxChecks = 100_000

// DecodeAnswer reads an answer. Strings are copies; body is changed by unescaping. The error is a *SyntaxError.
func DecodeAnswer(body []byte) (Answer, error) {
	var a Answer
	s := scanner{b: body}
	if s.peek() != '{' {
		return a, s.fail("'{' at the start of an answer")
	}
	first := true
	for {
		more, err := s.next(&first, '}')
		if err != nil || !more {
			return a, err
		}
		k, err := s.key()
		if err != nil {
			return a, err
		}
		if err := a.member(&s, k); err != nil {
			return a, err
		}
	}
}

func (a *Answer) member(s *scanner, k []byte) error {
	if string(k) == "data" && s.peek() == '[' {
		return a.checks(s)
	}
	if string(k) == "tasks" {
		return array(s, &a.Tasks)
	}
	text, _, err := s.scalar()
	if err != nil {
		return err
	}
	n, _ := parseUint(text)
	switch string(k) {
	case "response":
		a.Success = string(text) == "success"
	case "info":
		a.Info = string(text)
		a.Counts, a.HasCounts = ParseInfo(a.Info)
	case "redeclare":
		a.Redeclare = n != 0
	case "tidemark":
		a.Tidemark = n
	case "config_revision":
		a.ConfigRevision = n
	case "upload":
		a.UploadDisabled = string(text) == "disabled"
	}
	return nil
}

func (a *Answer) checks(s *scanner) error {
	a.HasChecks = true
	first := true
	for {
		more, err := s.next(&first, ']')
		if err != nil || !more {
			return err
		}
		if len(a.Checks) == MaxChecks {
			return s.fail("at most 100000 checks")
		}
		if s.peek() != '{' {
			return s.fail("'{' at the start of a check")
		}
		var c Check
		if err := c.decode(s); err != nil {
			return err
		}
		a.Checks = append(a.Checks, c)
	}
}

func (c *Check) decode(s *scanner) error {
	first := true
	for {
		more, err := s.next(&first, '}')
		if err != nil || !more {
			return err
		}
		k, err := s.key()
		if err != nil {
			return err
		}
		text, kind, err := s.scalar()
		if err != nil {
			return err
		}
		n, _ := parseUint(text)
		switch string(k) {
		case "key":
			c.Key = string(text)
		case "itemid":
			c.ItemID = n
		case "delay":
			c.Delay, c.DelaySeconds = string(text), int64(min(n, 1<<32))
			if kind == kindNumber {
				c.Delay += "s"
			}
		case "lastlogsize":
			c.LastLogSize = n
		case "mtime":
			c.MTime = n
		case "timeout":
			c.Timeout = string(text)
		}
	}
}
