package script

import (
	"crypto"
	"crypto/hmac"
	"crypto/md5" //nolint:gosec // scripts ask for it by name
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"hash"
	"strings"
	"time"

	"github.com/dop251/goja"

	"tidemark/internal/guard"
	"tidemark/wire/xmlpath"
)

// session is one run of a script with the objects that it may use.
type session struct {
	vm       *goja.Runtime
	deadline time.Time
	rules    *guard.Rules
	options  options
	// clients and requests count HttpRequest objects and what they sent, logged the bytes written to the log.
	clients, requests, logged int
	log                       []byte
}

// throw ends the function that the script called with an error that it may catch.
func (s *session) throw(format string, args ...any) {
	o := s.vm.NewGoError(fmt.Errorf(format, args...))
	_ = o.Set("name", "Error") // scripts put it into their own messages
	panic(o)
}

// text is a value as text; objects have their JSON.
func (s *session) text(v goja.Value) (string, error) {
	if o, ok := v.(*goja.Object); ok && o.ClassName() != "String" && o.ClassName() != "Number" && o.ClassName() != "Boolean" {
		out, err := o.MarshalJSON()
		return string(out), err
	}
	return v.String(), nil
}

// bytes is an argument as bytes: a text in UTF-8, an array of bytes as it is. Nothing and null are errors.
func (s *session) bytes(c goja.FunctionCall, i int) []byte {
	v := c.Argument(i)
	if goja.IsUndefined(v) || goja.IsNull(v) {
		s.throw("argument %d is missing", i+1)
	}
	if buffer, ok := v.Export().(goja.ArrayBuffer); ok {
		return buffer.Bytes()
	}
	if list, ok := v.Export().([]byte); ok {
		return list
	}
	return []byte(v.String())
}

// define puts the objects into the interpreter.
func (s *session) define() {
	set := func(name string, f func(goja.FunctionCall) goja.Value) { _ = s.vm.Set(name, f) }
	text := func(b []byte) goja.Value { return s.vm.ToValue(string(b)) }
	set("btoa", func(c goja.FunctionCall) goja.Value {
		return s.vm.ToValue(base64.StdEncoding.EncodeToString(s.bytes(c, 0)))
	})
	set("atob", func(c goja.FunctionCall) goja.Value {
		in := strings.Map(func(r rune) rune {
			if r <= ' ' {
				return -1
			}
			return r
		}, string(s.bytes(c, 0)))
		out, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(in, "="))
		if err != nil {
			s.throw("atob: the text is no base64")
		}
		return text(out)
	})
	set("md5", func(c goja.FunctionCall) goja.Value {
		sum := md5.Sum(s.bytes(c, 0)) //nolint:gosec // as above
		return s.vm.ToValue(hex.EncodeToString(sum[:]))
	})
	set("sha256", func(c goja.FunctionCall) goja.Value {
		sum := sha256.Sum256(s.bytes(c, 0))
		return s.vm.ToValue(hex.EncodeToString(sum[:]))
	})
	set("hmac", s.hmac)
	set("sign", s.sign)
	zabbix := s.vm.NewObject()
	for name, f := range map[string]func(goja.FunctionCall) goja.Value{"log": s.logLine, "Log": s.logLine, "sleep": s.sleep, "Sleep": s.sleep} {
		_ = zabbix.Set(name, f)
	}
	_ = s.vm.Set("Zabbix", zabbix)
	console := s.vm.NewObject()
	for _, name := range []string{"log", "warn", "error"} {
		_ = console.Set(name, func(c goja.FunctionCall) goja.Value { return s.write(c.Argument(0)) })
	}
	_ = s.vm.Set("console", console)
	for name, bit := range authKinds {
		_ = s.vm.Set(name, bit)
	}
	xml := s.vm.NewObject()
	_ = xml.Set("query", s.xmlQuery)
	_ = xml.Set("toJson", s.xmlToJSON)
	_ = xml.Set("fromJson", s.xmlFromJSON)
	_ = s.vm.Set("XML", xml)
	_ = s.vm.Set("HttpRequest", s.newHTTP)
	_ = s.vm.Set("CurlHttpRequest", s.newHTTP)
}

// maxLogged bounds what a script may write to the log, so that a loop of nothing else ends; Zabbix has the same limit.
const maxLogged = 8 << 20

// logLine is Zabbix.log(level, text).
func (s *session) logLine(c goja.FunctionCall) goja.Value { return s.write(c.Argument(1)) }

// write takes a line of the log. Of webhooks the first lines are kept for whoever tries them; else workers have no log.
func (s *session) write(v goja.Value) goja.Value {
	text, err := s.text(v)
	if err != nil {
		text = v.String()
	}
	if s.logged += len(text) + 1; s.logged > maxLogged {
		s.throw("the script writes more than %d bytes to the log", maxLogged)
	}
	if room := maxLogBytes - len(s.log) - 1; s.options.Webhook && room > 0 {
		s.log = append(append(s.log, text[:min(room, len(text))]...), '\n')
	}
	return goja.Undefined()
}

// sleep waits, but not past the time that the script has.
func (s *session) sleep(c goja.FunctionCall) goja.Value {
	d := time.Duration(c.Argument(0).ToInteger()) * time.Millisecond
	left := time.Until(s.deadline)
	if d > left {
		time.Sleep(max(0, left))
		s.throw("%w", ErrTimeout)
	}
	time.Sleep(max(0, d))
	return goja.Undefined()
}

func (s *session) hmac(c goja.FunctionCall) goja.Value {
	var make func() hash.Hash
	switch kind := c.Argument(0).String(); kind {
	case "md5":
		make = md5.New
	case "sha256":
		make = sha256.New
	default:
		s.throw("hmac: %q is no algorithm; expected md5 or sha256", kind)
	}
	h := hmac.New(make, s.bytes(c, 1))
	h.Write(s.bytes(c, 2))
	return s.vm.ToValue(hex.EncodeToString(h.Sum(nil)))
}

// sign is the RSA signature of a text with SHA-256 (RS256), in hexadecimal.
func (s *session) sign(c goja.FunctionCall) goja.Value {
	if kind := c.Argument(0).String(); kind != "sha256" {
		s.throw("sign: %q is no algorithm; expected sha256", kind)
	}
	key, err := parseKey(string(s.bytes(c, 1)))
	if err != nil {
		s.throw("sign: %w", err)
	}
	sum := sha256.Sum256(s.bytes(c, 2))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		s.throw("sign: %w", err)
	}
	return s.vm.ToValue(hex.EncodeToString(signature))
}

// parseKey reads a private key in PEM, whose line breaks may be lost or be spaces.
func parseKey(text string) (*rsa.PrivateKey, error) {
	bad := errors.New("the key is no RSA private key in PEM")
	_, rest, ok := strings.Cut(text, "-----BEGIN ")
	if !ok {
		return nil, bad
	}
	kind, rest, ok := strings.Cut(rest, "-----")
	body, _, both := strings.Cut(rest, "-----END ")
	if !ok || !both {
		return nil, bad
	}
	body = strings.Join(strings.Fields(body), "")
	block, _ := pem.Decode([]byte("-----BEGIN " + kind + "-----\n" + body + "\n-----END " + kind + "-----\n"))
	if block == nil {
		return nil, bad
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	key, ok := parsed.(*rsa.PrivateKey)
	if err != nil || !ok {
		return nil, bad
	}
	return key, nil
}

func (s *session) xmlQuery(c goja.FunctionCall) goja.Value {
	document, err := xmlpath.Parse(s.bytes(c, 1))
	if err != nil {
		s.throw("XML.query: %w", err)
	}
	path, err := xmlpath.Compile(c.Argument(0).String())
	if err != nil {
		s.throw("XML.query: %w", err)
	}
	out, err := document.Query(path)
	if err != nil {
		s.throw("XML.query: %w", err)
	}
	return s.vm.ToValue(string(out))
}

func (s *session) xmlToJSON(c goja.FunctionCall) goja.Value {
	document, err := xmlpath.Parse(s.bytes(c, 0))
	if err != nil {
		s.throw("XML.toJson: %w", err)
	}
	return s.vm.ToValue(string(document.JSON()))
}

func (s *session) xmlFromJSON(c goja.FunctionCall) goja.Value {
	out, err := xmlpath.FromJSON(s.bytes(c, 0))
	if err != nil {
		s.throw("XML.fromJson: %w", err)
	}
	return s.vm.ToValue(string(out))
}
