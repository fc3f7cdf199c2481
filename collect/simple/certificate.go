package simple

import (
	"context"
	"crypto/sha1" //nolint:gosec // a fingerprint that people compare
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// certificateAnswer has the form of agent 2's web.certificate.get.
type certificateAnswer struct {
	X509 struct {
		Version          int           `json:"version"`
		Serial           string        `json:"serial_number"`
		Signature        string        `json:"signature_algorithm"`
		Issuer           string        `json:"issuer"`
		NotBefore        certificateAt `json:"not_before"`
		NotAfter         certificateAt `json:"not_after"`
		Subject          string        `json:"subject"`
		PublicKey        string        `json:"public_key_algorithm"`
		AlternativeNames []string      `json:"alternative_names"`
	} `json:"x509"`
	Result struct {
		Value   string `json:"value"`
		Message string `json:"message"`
	} `json:"result"`
	SHA1   string `json:"sha1_fingerprint"`
	SHA256 string `json:"sha256_fingerprint"`
}

type certificateAt struct {
	Value     string `json:"value"`
	Timestamp int64  `json:"timestamp"`
}

func at(t time.Time) certificateAt {
	return certificateAt{t.UTC().Format("Jan 02 15:04:05 2006 GMT"), t.Unix()}
}

// certificate gets the certificate that a server shows: parameters are the name, or an https address, then port and address.
func (c *Checker) certificate(ctx context.Context, params []string) (string, error) {
	if len(params) < 1 || len(params) > 3 || params[0] == "" {
		return "", errors.New("web.certificate.get expects a host name, and port and address if need be")
	}
	params = append(params, "", "")
	name, port, address := params[0], params[1], params[2]
	if strings.Contains(name, "://") {
		u, err := url.Parse(name)
		if err != nil || u.Scheme != "https" || u.Hostname() == "" {
			return "", fmt.Errorf("%.200q is no address; expected a host name or https://name", name)
		}
		if name = u.Hostname(); port == "" {
			port = u.Port()
		}
	}
	if port == "" {
		port = "443"
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", fmt.Errorf("port %q; expected a number from 1 to 65535", port)
	}
	if address == "" {
		address = name
	}
	nc, err := c.dialer.DialContext(ctx, "tcp", net.JoinHostPort(strings.Trim(address, "[]"), port))
	if err != nil {
		return "", fmt.Errorf("cannot connect to %s port %s: %w", address, port, err)
	}
	defer nc.Close()
	// The certificate is wanted whether it is good or not; whether it is good is part of the answer.
	secured := tls.Client(nc, &tls.Config{ServerName: name, InsecureSkipVerify: true, MinVersion: tls.VersionTLS10})
	if err := secured.HandshakeContext(ctx); err != nil {
		return "", fmt.Errorf("%s port %s: %w", address, port, err)
	}
	chain := secured.ConnectionState().PeerCertificates
	if len(chain) == 0 {
		return "", fmt.Errorf("%s port %s shows no certificate", address, port)
	}
	text, err := json.Marshal(describe(chain, name))
	return string(text), err
}

func describe(chain []*x509.Certificate, name string) *certificateAnswer {
	leaf := chain[0]
	a := &certificateAnswer{}
	a.X509.Version, a.X509.Serial, a.X509.Signature = leaf.Version, hex.EncodeToString(leaf.SerialNumber.Bytes()), leaf.SignatureAlgorithm.String()
	a.X509.Issuer, a.X509.Subject, a.X509.PublicKey = leaf.Issuer.String(), leaf.Subject.String(), leaf.PublicKeyAlgorithm.String()
	a.X509.NotBefore, a.X509.NotAfter = at(leaf.NotBefore), at(leaf.NotAfter)
	a.X509.AlternativeNames = append([]string{}, leaf.DNSNames...)
	for _, ip := range leaf.IPAddresses {
		a.X509.AlternativeNames = append(a.X509.AlternativeNames, ip.String())
	}
	short, long := sha1.Sum(leaf.Raw), sha256.Sum256(leaf.Raw) //nolint:gosec // as above
	a.SHA1, a.SHA256 = hex.EncodeToString(short[:]), hex.EncodeToString(long[:])
	between := x509.NewCertPool()
	for _, cert := range chain[1:] {
		between.AddCert(cert)
	}
	_, err := leaf.Verify(x509.VerifyOptions{Intermediates: between, DNSName: name})
	switch {
	case err == nil:
		a.Result.Value, a.Result.Message = "valid", "certificate verified successfully"
	case leaf.Issuer.String() == leaf.Subject.String() && leaf.VerifyHostname(name) == nil && time.Now().Before(leaf.NotAfter) && time.Now().After(leaf.NotBefore):
		a.Result.Value, a.Result.Message = "valid-but-self-signed", "certificate verified successfully, but determined to be self signed"
	default:
		a.Result.Value, a.Result.Message = "invalid", "failed to verify certificate: "+err.Error()
	}
	return a
}
