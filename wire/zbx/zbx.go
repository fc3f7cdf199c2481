// Package zbx holds the codec of the Zabbix sender and active agent protocols: frames, requests and answers.
//
// It turns bytes into structs and back; it opens no socket and starts no goroutine. A frame is a header and a body:
//
//	magic     4 bytes   "ZBXD"
//	flags     1 byte    0x01 protocol (always), 0x02 zlib body, 0x04 large
//	length    4 bytes   little-endian, length of the body as sent      (8 bytes when large)
//	reserved  4 bytes   length after inflating when zlib, else unused  (8 bytes when large)
//
// The body is JSON. A request is read in two passes. [DecodeRequest] checks the whole text, takes the fields of the outer
// object in whatever order they come, and remembers where the arrays lie. [Rows] and [Declarations] then walk the arrays.
// Strings are unescaped in place and handed out as slices of the body, so that no value costs an allocation.
//
// Source of the protocol: the public Zabbix manual, appendix "Protocols", and sessions recorded between Debian's 6.0
// clients and a server (testdata of collect/trapper). docs/protocol/zabbix.md has all of it, with our extension.
package zbx

import "fmt"

// The flags of a frame.
const (
	FlagProtocol   = 0x01
	FlagCompressed = 0x02
	FlagLarge      = 0x04
)

// DefaultMaxBodyBytes bounds a body as sent and a body after inflating. A sender puts 250 values and an agent at most
// 65,535 into a request, so that real requests stay far below it.
const DefaultMaxBodyBytes = 128 << 20

// MaxDepth bounds the nesting of JSON in a request; real requests need three levels.
const MaxDepth = 32

// The names of the requests.
const (
	SenderData   = "sender data"
	AgentData    = "agent data"
	ActiveChecks = "active checks"
	Heartbeat    = "active check heartbeat"
	// Those of proxies.
	ProxyConfig    = "proxy config"
	ProxyData      = "proxy data"
	ProxyHeartbeat = "proxy heartbeat"
	// ProxyTasks is what a server asks a passive proxy besides ProxyConfig and ProxyData.
	ProxyTasks = "proxy tasks"
)

// FrameError says that bytes are no acceptable frame. A connection that sent such bytes cannot be read on.
type FrameError struct {
	// Reason is one of the Reason constants; it names the counter.
	Reason string
	// Want says what was found and what was expected.
	Want string
}

// Error says what was found and what was expected.
func (e *FrameError) Error() string { return "frame: " + e.Want }

// The reasons of a FrameError.
const (
	ReasonMagic     = "magic"
	ReasonFlags     = "flags"
	ReasonTooLarge  = "too_large"
	ReasonTruncated = "truncated"
	ReasonZlib      = "zlib"
)

func frameErrorf(reason, format string, args ...any) error {
	return &FrameError{Reason: reason, Want: fmt.Sprintf(format, args...)}
}

// SyntaxError says that a body is not the JSON that was expected.
type SyntaxError struct {
	// Offset is where in the text, in bytes.
	Offset int
	// Want says what was expected there.
	Want string
}

// Error names the place and what was expected.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("JSON at byte %d: expected %s", e.Offset, e.Want)
}
