package mongodb

import (
	"cmp"
	"errors"
	"net"
	"net/url"
	"slices"
	"strings"
)

// address is what is known of a connection string.
type address struct {
	instance string
	// secrets are the parts that no text may hold, longest first.
	secrets []string
}

const defaultPort = "27017"

var (
	errScheme = errors.New("MongoDB connection string: expected mongodb://[USER:PASSWORD@]HOST[:PORT]/[?OPTIONS]")
	errSeeds  = errors.New("MongoDB connection string: it names several servers; name the one that runs on this machine, such as mongodb://127.0.0.1:27017/. " +
		"Each member of a replica set has an agent of its own")
)

// parseURI finds the server's address and what is secret. It is done before the driver sees the string, whose messages may repeat parts of it.
func parseURI(uri string) (address, error) {
	rest, ok := strings.CutPrefix(uri, "mongodb://")
	if !ok {
		return address{}, errScheme
	}
	authority, tail, _ := strings.Cut(rest, "?")
	if i := strings.LastIndexByte(authority, '/'); i >= 0 && !strings.Contains(authority[i:], ".sock") {
		authority = authority[:i]
	}
	a := address{secrets: []string{uri, rest}}
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		user := authority[:i]
		authority = authority[i+1:]
		a.secrets = append(a.secrets, user)
		name, password, _ := strings.Cut(user, ":")
		for _, part := range []string{name, password} {
			a.secrets = append(a.secrets, part)
			if plain, err := url.PathUnescape(part); err == nil {
				a.secrets = append(a.secrets, plain)
			}
		}
	}
	if tail != "" { // Certificates' passwords and tokens may be among the options.
		a.secrets = append(a.secrets, tail)
		for option := range strings.SplitSeq(tail, "&") {
			name, value, _ := strings.Cut(option, "=")
			if strings.Contains(strings.ToLower(name), "password") || strings.Contains(strings.ToLower(name), "properties") {
				a.secrets = append(a.secrets, value)
				if plain, err := url.QueryUnescape(value); err == nil {
					a.secrets = append(a.secrets, plain)
				}
			}
		}
	}
	if authority == "" {
		return address{}, errScheme
	}
	if strings.Contains(authority, ",") {
		return address{}, errSeeds
	}
	a.secrets = slices.DeleteFunc(a.secrets, func(s string) bool { return s == "" })
	slices.SortFunc(a.secrets, func(x, y string) int { return cmp.Compare(len(y), len(x)) })
	a.instance = instance(authority)
	return a, nil
}

// instance writes the host part of a connection string as "host:port"; a socket as its path.
func instance(authority string) string {
	if plain, err := url.PathUnescape(authority); err == nil {
		authority = plain
	}
	if strings.HasSuffix(authority, ".sock") {
		return authority
	}
	if host, port, err := net.SplitHostPort(authority); err == nil {
		return net.JoinHostPort(host, port)
	}
	return net.JoinHostPort(strings.Trim(authority, "[]"), defaultPort)
}

// maxReasonBytes bounds what is told of an error.
const maxReasonBytes = 300

// scrub takes everything secret out of a text.
func (m *Monitor) scrub(text string) string {
	for _, s := range m.secrets {
		text = strings.ReplaceAll(text, s, "…")
	}
	if len(text) > maxReasonBytes {
		text = strings.ToValidUTF8(text[:maxReasonBytes], "") + "…"
	}
	return text
}
