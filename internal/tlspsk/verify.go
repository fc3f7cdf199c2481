package tlspsk

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"
)

// Verifying returns settings for a client that check the peer's certificate as Zabbix does: it must come from one of the authorities
// in RootCAs, and be of the issuer and subject, where those are not empty, whatever machine it names.
func Verifying(base *tls.Config, issuer, subject string) *tls.Config {
	c := base.Clone()
	// Only the check of the machine's name is left out; the rest is below.
	c.InsecureSkipVerify = true
	roots := c.RootCAs
	c.VerifyConnection = func(state tls.ConnectionState) error {
		if len(state.PeerCertificates) == 0 {
			return errors.New("the peer shows no certificate")
		}
		between := x509.NewCertPool()
		for _, cert := range state.PeerCertificates[1:] {
			between.AddCert(cert)
		}
		leaf := state.PeerCertificates[0]
		_, err := leaf.Verify(x509.VerifyOptions{
			Roots: roots, Intermediates: between, CurrentTime: time.Now(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
		})
		if err != nil {
			return err
		}
		if got := leaf.Issuer.String(); issuer != "" && got != issuer {
			return fmt.Errorf("the certificate's issuer is %q, expected %q", got, issuer)
		}
		if got := leaf.Subject.String(); subject != "" && got != subject {
			return fmt.Errorf("the certificate's subject is %q, expected %q", got, subject)
		}
		return nil
	}
	return c
}
