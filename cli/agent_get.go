package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tidemark/collect/zbxagent"
	"tidemark/internal/tlspsk"
	"tidemark/model"
)

// getSettings are the flags of agent get.
type getSettings struct {
	from, key             string
	timeout               time.Duration
	identity, keyFile     string
	caFile, certFile, pem string
}

func agentGetCommand() *cobra.Command {
	s := &getSettings{}
	c := &cobra.Command{
		Use:   "get --from ADDR -k KEY",
		Short: "Ask a Zabbix agent for one key",
		Long: "Ask an agent for one key by a passive check, as a server does, and print the value. Agents of every version are asked\n" +
			"in the way that they understand. An agent answers only those in its Server= list.",
		Example: "  tidemark agent get --from 10.0.0.5 -k 'vfs.fs.size[/,free]'\n" +
			"  tidemark agent get --from db1:10050 -k agent.version --tls-psk-identity db1 --tls-psk-file db1.psk",
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return runAgentGet(c, s) },
	}
	f := c.Flags()
	f.StringVar(&s.from, "from", "", "the agent's address, host or host:port (port 10050)")
	f.StringVarP(&s.key, "key", "k", "", "the item key")
	f.DurationVar(&s.timeout, "timeout", 5*time.Second, "how long to wait for the answer, at most 10m")
	f.StringVar(&s.identity, "tls-psk-identity", "", "connect with the pre-shared key of this identity")
	f.StringVar(&s.keyFile, "tls-psk-file", "", "the file with the pre-shared key in hexadecimal digits")
	f.StringVar(&s.caFile, "tls-ca-file", "", "connect with certificates; the file with those of the authorities")
	f.StringVar(&s.certFile, "tls-cert-file", "", "the file with the own certificate")
	f.StringVar(&s.pem, "tls-key-file", "", "the file with the key of the own certificate")
	return c
}

func runAgentGet(c *cobra.Command, s *getSettings) error {
	if s.from == "" || s.key == "" {
		return usagef("agent get needs --from ADDR and -k KEY")
	}
	if s.timeout <= 0 || s.timeout > 10*time.Minute {
		return usagef("--timeout is %s, expected up to 10m", s.timeout)
	}
	query := zbxagent.Query{Address: agentAddress(s.from), Key: s.key}
	var options zbxagent.Options
	if err := s.secure(&query, &options); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.Context(), s.timeout)
	defer cancel()
	answer, err := zbxagent.New(options).Get(ctx, query)
	switch {
	case err != nil:
		return err
	case answer.NotSupported != "":
		return fmt.Errorf("not supported: %s", answer.NotSupported)
	case answer.NoValue:
		return errors.New("the agent has no value now")
	}
	_, err = fmt.Fprintf(c.OutOrStdout(), "%s\n", answer.Value)
	return err
}

// agentAddress adds the port of agents where there is none.
func agentAddress(text string) string {
	if _, _, err := net.SplitHostPort(text); err == nil {
		return text
	}
	return net.JoinHostPort(strings.Trim(text, "[]"), "10050")
}

// secure reads what the connection is protected with.
func (s *getSettings) secure(q *zbxagent.Query, o *zbxagent.Options) error {
	withKey, withCert := s.identity != "" || s.keyFile != "", s.caFile != "" || s.certFile != "" || s.pem != ""
	switch {
	case withKey && withCert:
		return usagef("a pre-shared key and certificates cannot be used together")
	case withKey && (s.identity == "" || s.keyFile == ""):
		return usagef("--tls-psk-identity and --tls-psk-file belong together")
	case withCert && s.caFile == "" || (s.certFile == "") != (s.pem == ""):
		return usagef("certificates need --tls-ca-file, and --tls-cert-file and --tls-key-file together")
	case withKey:
		key, err := readKeyFile(s.keyFile)
		if err != nil {
			return err
		}
		q.TLS = model.HostTLS{Connect: model.PSK, Identity: s.identity, Key: key}
		return tlspsk.CheckKey(s.identity, key)
	case !withCert:
		return nil
	}
	authorities, err := os.ReadFile(s.caFile)
	if err != nil {
		return err
	}
	q.TLS.Connect = model.Certificate
	o.Certificates = &tls.Config{RootCAs: x509.NewCertPool()}
	if !o.Certificates.RootCAs.AppendCertsFromPEM(authorities) {
		return fmt.Errorf("%s holds no certificate in PEM form", s.caFile)
	}
	if s.certFile == "" {
		return nil
	}
	own, err := tls.LoadX509KeyPair(s.certFile, s.pem)
	o.Certificates.Certificates = []tls.Certificate{own}
	return err
}

// readKeyFile reads a pre-shared key as agents keep it: one line of hexadecimal digits.
func readKeyFile(name string) ([]byte, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil {
		// Not the library's error, which shows a byte of the key.
		return nil, fmt.Errorf("%s: expected one line of hexadecimal digits", name)
	}
	return key, nil
}
