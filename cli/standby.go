package cli

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"

	"tidemark/config"
	"tidemark/server"
	"tidemark/standby"
)

// peerOptions are how other servers of a cluster are called.
func peerOptions(c *config.Config, own string) (server.Peer, error) {
	p := server.Peer{Token: own}
	if c.Standby.TokenFile != "" {
		var err error
		if p.Token, err = readTokenFile("standby.token_file", c.Standby.TokenFile); err != nil {
			return p, err
		}
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy = nil // they are neighbours
	p.HTTP = &http.Client{Transport: transport}
	if c.Standby.CAFile == "" {
		return p, nil
	}
	text, err := os.ReadFile(c.Standby.CAFile)
	if err != nil {
		return p, fmt.Errorf("standby.ca_file: %w", err)
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(text) {
		return p, usagef("standby.ca_file %s: expected certificates in PEM", c.Standby.CAFile)
	}
	transport.TLSClientConfig = &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS12}
	return p, nil
}

// runStandby runs a server that follows another one.
func runStandby(c *cobra.Command, s *settings, conf *config.Config) error {
	options, err := serverOptions(conf, s.logger(c.ErrOrStderr()))
	if err != nil {
		return err
	}
	fmt.Fprintf(c.OutOrStdout(), "Tidemark is at %s, a standby of %s; agents and senders after a promotion: %s\n", pageURL(conf, options.HTTP), conf.Standby.Of, options.Trapper.Addr())
	err = server.Follow(c.Context(), options, server.FollowOptions{Of: conf.Standby.Of, Address: ownAddress(conf, options.HTTP), Replace: s.replaceData})
	_ = options.HTTP.Close()
	_ = options.Trapper.Close()
	return err
}

func storePromoteCommand() *cobra.Command {
	var client serverClient
	var asJSON bool
	c := &cobra.Command{
		Use:   "promote (DIR | --http ADDR)",
		Short: "Make a standby the primary",
		Long: "Make the standby at ADDR the primary. If its primary answers it stops taking values first and everything it has is waited for; if not, what the standby has counts,\n" +
			"and the old primary is fenced as soon as it is there again. With DIR, the data folder of a stopped standby or fenced server, the next start is that of a primary.",
		Args: someArgs(0, 1, "the data folder of a stopped standby, or --http"),
		RunE: func(c *cobra.Command, args []string) error {
			if (client.address == "") == (len(args) == 0) {
				return usagef("store promote expects DIR of a stopped server, or --http ADDR of a running one")
			}
			var p server.Promoted
			var err error
			if len(args) == 1 {
				p, err = server.PromoteOffline(args[0])
			} else {
				err = client.call(c.Context(), http.MethodPost, "/api/standby/promote", nil, &p)
			}
			if err != nil {
				return err
			}
			return sayPromoted(c, &p, len(args) == 1, asJSON)
		},
	}
	client.addTo(c.Flags())
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func sayPromoted(c *cobra.Command, p *server.Promoted, offline, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(c.OutOrStdout()).Encode(p)
	}
	text := fmt.Sprintf("primary with epoch %s after %.0f ms", standby.EpochText(p.Epoch), p.Milliseconds)
	switch {
	case offline:
		text = "the next start is that of a primary with epoch " + standby.EpochText(p.Epoch)
	case p.HandedOver:
		text += "; the old primary handed over: everything it had is here"
	default:
		text += "; the old primary did not hand over (" + p.Problem + "): what the standby had counts"
	}
	_, err := fmt.Fprintln(c.OutOrStdout(), text)
	return err
}

// digestReport is what store digest says, and what the API answers.
type digestReport struct {
	From    int64   `json:"from,string"`
	To      int64   `json:"to,string"`
	Values  uint64  `json:"values"`
	Digest  string  `json:"digest"`
	LSN     uint64  `json:"lsn"`
	Seconds float64 `json:"seconds"`
}

func storeDigestCommand() *cobra.Command {
	var client serverClient
	var with, from, to string
	var asJSON bool
	c := &cobra.Command{
		Use:   "digest (DIR | --http ADDR)",
		Short: "Sum up all values, to compare two stores",
		Long: "Read all values, or those from --from to --to (RFC 3339, the latter not included), and print a sum that is the same for equal values, whatever the codec and the files.\n" +
			"With --http and --with ADDR2 both servers are asked for the same range and compared; without --to it ends a minute ago, since values are on their way.",
		Args: someArgs(0, 1, "a data folder or its engine folder, or --http"),
		RunE: func(c *cobra.Command, args []string) error {
			if (client.address == "") == (len(args) == 0) || with != "" && client.address == "" {
				return usagef("store digest expects DIR of a stopped server, or --http ADDR of a running one and perhaps --with ADDR2")
			}
			r, err := digestRange(from, to, with != "")
			if err != nil {
				return err
			}
			if with != "" {
				return compareDigests(c, &client, with, r, asJSON)
			}
			if len(args) == 1 {
				dir, err := engineFolder(args[0])
				if err != nil {
					return err
				}
				d, err := server.DigestOffline(c.Context(), dir, r.From, r.To)
				if err != nil {
					return err
				}
				*r = digestReport{From: r.From, To: r.To, Values: d.Values, Digest: d.Digest, LSN: d.LSN, Seconds: d.Seconds}
			} else if err := r.ask(c, &client); err != nil {
				return err
			}
			return sayDigest(c, r, asJSON)
		},
	}
	client.addTo(c.Flags())
	c.Flags().StringVar(&with, "with", "", "address of another running server to compare with, with the same token")
	c.Flags().StringVar(&from, "from", "", "time of the first value, such as 2026-01-01T00:00:00Z")
	c.Flags().StringVar(&to, "to", "", "time behind the last value")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// digestRange reads the flags; settled ends a minute ago where nothing else is said.
func digestRange(from, to string, settled bool) (*digestReport, error) {
	r := &digestReport{From: -1 << 62, To: 1 << 62}
	if settled {
		r.To = time.Now().Add(-time.Minute).UnixNano()
	}
	for _, flag := range []struct {
		name, text string
		to         *int64
	}{{"--from", from, &r.From}, {"--to", to, &r.To}} {
		if flag.text == "" {
			continue
		}
		at, err := time.Parse(time.RFC3339Nano, flag.text)
		if err != nil {
			return nil, usagef("%s %q: expected a time such as 2026-01-01T00:00:00Z", flag.name, flag.text)
		}
		*flag.to = at.UnixNano()
	}
	return r, nil
}

// ask has a server sum up.
func (r *digestReport) ask(c *cobra.Command, client *serverClient) error {
	return client.call(c.Context(), http.MethodGet, fmt.Sprintf("/api/storage/digest?from=%d&to=%d", r.From, r.To), nil, r)
}

func sayDigest(c *cobra.Command, r *digestReport, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(c.OutOrStdout()).Encode(r)
	}
	_, err := fmt.Fprintf(c.OutOrStdout(), "%s  %d values in %.1f s\n", r.Digest, r.Values, r.Seconds)
	return err
}

// digestRounds is how often two servers are compared that differ: late values may come in between.
const digestRounds = 3

func compareDigests(c *cobra.Command, client *serverClient, with string, r *digestReport, asJSON bool) error {
	other := &serverClient{address: with}
	var one, two digestReport
	for range digestRounds {
		one, two = *r, *r
		if err := errors.Join(one.ask(c, client), two.ask(c, other)); err != nil {
			return err
		}
		if one.Digest == two.Digest && one.Values == two.Values {
			break
		}
	}
	equal := one.Digest == two.Digest && one.Values == two.Values
	var err error
	if asJSON {
		err = json.NewEncoder(c.OutOrStdout()).Encode(struct {
			Equal  bool         `json:"equal"`
			First  digestReport `json:"first"`
			Second digestReport `json:"second"`
		}{equal, one, two})
	} else {
		say := map[bool]string{true: "equal", false: "different"}[equal]
		if equal && one.Values == 0 {
			say = "nothing was compared, because neither has values in that range, which ends a minute ago without --to"
		}
		_, err = fmt.Fprintf(c.OutOrStdout(), "%s: %s has %s of %d values, %s has %s of %d\n", say, client.address, one.Digest, one.Values, with, two.Digest, two.Values)
	}
	if err == nil && !equal {
		err = errSilent
	}
	return err
}
