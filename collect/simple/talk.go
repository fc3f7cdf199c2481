package simple

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
)

const (
	// maxGreetingLines and maxLineBytes bound what is read of a peer.
	maxGreetingLines = 100
	maxLineBytes     = 4096
)

// greeting returns a function that waits for a line that begins with one of the texts, then says goodbye. Lines before the last of a
// greeting, such as "220-welcome", are passed over.
func greeting(bye string, want ...string) func(context.Context, net.Conn) bool {
	return func(_ context.Context, nc net.Conn) bool {
		r := bufio.NewReaderSize(nc, maxLineBytes)
		for range maxGreetingLines {
			line, err := r.ReadString('\n')
			if err != nil || len(line) > maxLineBytes {
				return false
			}
			if len(line) > 3 && line[3] == '-' && !strings.HasPrefix(line, "* ") {
				continue
			}
			for _, w := range want {
				if strings.HasPrefix(line, w) {
					_, _ = io.WriteString(nc, bye)
					return true
				}
			}
			return false
		}
		return false
	}
}

// talkSSH looks for the identification of RFC 4253, 4.2, and answers with one, so that the peer does not log a broken connection.
func talkSSH(_ context.Context, nc net.Conn) bool {
	r := bufio.NewReaderSize(nc, maxLineBytes)
	for range maxGreetingLines {
		line, err := r.ReadString('\n')
		if err != nil || len(line) > maxLineBytes {
			return false
		}
		if strings.HasPrefix(line, "SSH-") {
			_, _ = io.WriteString(nc, "SSH-2.0-tidemark\r\n")
			return true
		}
	}
	return false
}

// talkHTTPS asks for the root; any answer will do.
func talkHTTPS(ctx context.Context, nc net.Conn) bool {
	host, _, _ := net.SplitHostPort(nc.RemoteAddr().String())
	c := tls.Client(nc, &tls.Config{InsecureSkipVerify: true, ServerName: host}) // Whether it answers is asked, not who it is.
	if c.HandshakeContext(ctx) != nil {
		return false
	}
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: "+host+"\r\nConnection: close\r\n\r\n"); err != nil {
		return false
	}
	response, err := http.ReadResponse(bufio.NewReaderSize(io.LimitReader(c, 1<<20), maxLineBytes), nil)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return true
}

// ldapBind is an anonymous bind of RFC 4511, 4.2: message 1, version 3, no name, simple authentication without a password.
var ldapBind = []byte{0x30, 0x0c, 0x02, 0x01, 0x01, 0x60, 0x07, 0x02, 0x01, 0x03, 0x04, 0x00, 0x80, 0x00}

// talkLDAP reports whether the answer to an anonymous bind is a bind response, whatever its result.
func talkLDAP(_ context.Context, nc net.Conn) bool {
	if _, err := nc.Write(ldapBind); err != nil {
		return false
	}
	var head [2]byte
	if _, err := io.ReadFull(nc, head[:]); err != nil || head[0] != 0x30 {
		return false
	}
	skip, rest := 0, int(head[1])
	if head[1]&0x80 != 0 {
		if skip = int(head[1] & 0x7f); skip > 4 {
			return false
		}
		rest = 4
	}
	if rest < 4 {
		return false
	}
	body := make([]byte, skip+4)
	if _, err := io.ReadFull(nc, body); err != nil {
		return false
	}
	return bytes.Equal(body[skip:skip+3], []byte{0x02, 0x01, 0x01}) && body[skip+3] == 0x61
}

// talkTelnet refuses every option that the peer offers (RFC 854) and waits for a prompt, which ends with a colon.
func talkTelnet(_ context.Context, nc net.Conn) bool {
	const iac, will, wont, do, dont = 255, 251, 252, 253, 254
	r := bufio.NewReaderSize(nc, maxLineBytes)
	last := byte(0)
	for range 1 << 16 {
		b, err := r.ReadByte()
		if err != nil {
			return false
		}
		if b != iac {
			if b > ' ' {
				last = b
			}
			if last == ':' && r.Buffered() == 0 {
				return true
			}
			continue
		}
		verb, err := r.ReadByte()
		if err != nil {
			return false
		}
		if verb < will {
			continue
		}
		option, err := r.ReadByte()
		if err != nil {
			return false
		}
		switch verb {
		case do, dont:
			_, err = nc.Write([]byte{iac, wont, option})
		case will, wont:
			_, err = nc.Write([]byte{iac, dont, option})
		}
		if err != nil {
			return false
		}
	}
	return false
}

// talkNTP asks for the time (RFC 5905) and reports whether a server answers.
func talkNTP(_ context.Context, nc net.Conn) bool {
	request := make([]byte, 48)
	request[0] = 4<<3 | 3 // version 4, client
	copy(request[40:], "tidemark")
	if _, err := nc.Write(request); err != nil {
		return false
	}
	answer := make([]byte, 512)
	n, err := nc.Read(answer)
	// Mode 4 is a server; the time that we sent comes back as the origin.
	return err == nil && n >= 48 && answer[0]&7 == 4 && string(answer[24:32]) == "tidemark"
}
