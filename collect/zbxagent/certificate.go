package zbxagent

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"syscall"
	"time"

	"tidemark/model"
)

// verifying returns settings that check a certificate as Zabbix does: it must come from one of the authorities, and be of
// the issuer and subject that the host says, whatever machine it names.
func verifying(base *tls.Config, t *model.HostTLS) *tls.Config {
	c := base.Clone()
	// Only the check of the machine's name is left out; the rest is below.
	c.InsecureSkipVerify = true
	roots, issuer, subject := c.RootCAs, t.Issuer, t.Subject
	c.VerifyConnection = func(state tls.ConnectionState) error {
		if len(state.PeerCertificates) == 0 {
			return errors.New("the agent shows no certificate")
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

func isReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
