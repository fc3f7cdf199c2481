package mongodb

import (
	"bytes"
	"net"
	"net/netip"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"tidemark/sniff"
	"tidemark/sniff/flow"
)

// MaxLineBytes bounds a line of a log; mongod's own limit is 10 kB a message, as long as nobody changes maxLogSizeKB.
const MaxLineBytes = 256 << 10

// slowMark is in every line of a slow request, as mongod writes it since 4.4 (manual, page "Log Messages", message 51803).
var slowMark = []byte(`"Slow query"`)

// Verdict says what a line or an entry is.
type Verdict uint8

// The verdicts.
const (
	Other  Verdict = iota // no request
	Slow                  // a request
	Unread                // a request that cannot be read
)

// DecodeLine reads a line of mongod's JSON log. The request is valid until the next call; its command holds literal values, so give it to
// sniff.Sampled and keep nothing of it.
func DecodeLine(line []byte, to *sniff.Told) Verdict {
	if !bytes.Contains(line, slowMark) {
		return Other
	}
	if len(line) > MaxLineBytes {
		return Unread
	}
	var document bson.D
	if err := bson.UnmarshalExtJSON(line, false, &document); err != nil {
		return Unread
	}
	raw, err := bson.Marshal(document)
	if err != nil {
		return Unread
	}
	d := bson.Raw(raw)
	if text(d, "msg") != "Slow query" {
		return Other
	}
	if _, err := d.LookupErr("truncated", "command"); err == nil { // The same.
		return Unread
	}
	at, _ := date(d, "t")
	attr, ok := d.Lookup("attr").DocumentOK()
	if !ok {
		return Unread
	}
	return decodeTold(attr, told{kind: "type", millis: "durationMillis", reply: "reslen", code: "errCode", at: at * int64(time.Millisecond)}, to)
}

// DecodeProfile reads an entry of a system.profile collection (manual, page "Database Profiler Output").
func DecodeProfile(entry bson.Raw, to *sniff.Told) Verdict {
	at, ok := date(entry, "ts")
	if !ok || text(entry, "appName") == Application {
		return Other
	}
	return decodeTold(entry, told{kind: "op", millis: "millis", reply: "responseLength", code: "errCode", at: at * int64(time.Millisecond)}, to)
}

// told names the fields that log and profiler name differently.
type told struct {
	kind, millis, reply, code string
	at                        int64
}

func decodeTold(d bson.Raw, names told, to *sniff.Told) Verdict {
	command, ok := d.Lookup("command").DocumentOK()
	if !ok {
		return Unread
	}
	*to = sniff.Told{At: names.at, Application: text(d, "appName"), Client: client(d)}
	if millis, ok := number(d, names.millis); ok {
		to.LatencyNanos = int64(min(max(millis, 0), 1e9) * 1e6)
	}
	if n, ok := number(d, names.reply); ok {
		to.ReplyBytes = int(min(max(n, 0), 1<<30))
	}
	for _, name := range []string{"nreturned", "nModified", "nMatched", "ndeleted", "ninserted"} {
		if n, ok := number(d, name); ok && n >= 0 {
			to.Documents = int(min(n, 1<<30))
			break
		}
	}
	code, failed := number(d, names.code)
	to.Failed, to.Code = failed, int32(min(max(code, 0), 1<<31-1))
	return whichCommand(d, command, text(d, names.kind), to)
}

// whichCommand fills in the command. Updates and deletes are told statement by statement, as {q, u}, and once more as the whole command, which is
// left out.
func whichCommand(d, command bson.Raw, kind string, to *sniff.Told) Verdict {
	first, err := command.IndexErr(0)
	if err != nil {
		return Unread
	}
	name, err := first.KeyErr()
	if err != nil {
		return Unread
	}
	ns, inCollection := splitAny(text(d, "ns"))
	switch {
	case name == "$truncated": // Half a command is another shape.
		return Unread
	case name == "q" && (kind == "update" || kind == "remove") && inCollection:
		to.Command = statement(kind, ns, command)
	case name == "update" || name == "delete":
		return Other
	case name == "getMore":
		origin, ok := d.Lookup("originatingCommand").DocumentOK()
		if !ok {
			origin, ok = d.Lookup("cursor", "originatingCommand").DocumentOK()
		}
		if !ok {
			return Unread
		}
		to.Command, to.Further = withDatabase(origin, ns.database), true
	default:
		to.Command = withDatabase(command, ns.database)
	}
	if to.Command == nil {
		return Unread
	}
	return Slow
}

// splitAny takes a namespace apart, also those of the server itself.
func splitAny(s string) (namespace, bool) {
	database, collection, ok := strings.Cut(s, ".")
	return namespace{database, collection}, ok
}

// statement makes the command of one statement of an update or delete.
func statement(kind string, ns namespace, q bson.Raw) []byte {
	name, list := "update", "updates"
	if kind == "remove" {
		name, list = "delete", "deletes"
	}
	raw, err := bson.Marshal(bson.D{{Key: name, Value: ns.collection}, {Key: list, Value: bson.A{q}}, {Key: "$db", Value: ns.database}})
	if err != nil {
		return nil
	}
	return raw
}

// withDatabase adds $db where a command lacks it.
func withDatabase(command bson.Raw, database string) []byte {
	if _, err := command.LookupErr("$db"); err == nil || database == "" {
		return command
	}
	elements, err := command.Elements()
	if err != nil {
		return nil
	}
	d := bson.D{}
	for _, e := range elements {
		d = append(d, bson.E{Key: e.Key(), Value: e.Value()})
	}
	raw, err := bson.Marshal(append(d, bson.E{Key: "$db", Value: database}))
	if err != nil {
		return nil
	}
	return raw
}

// client reads who asked: the log has "remote" with a port, the profiler "client" without.
func client(d bson.Raw) (e flow.Endpoint) {
	host := text(d, "remote")
	if host == "" {
		host = text(d, "client")
	}
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	if a, err := netip.ParseAddr(host); err == nil {
		e.Address = a.As16()
	}
	return e
}
