package cli

import (
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"tidemark/client"
)

func proxiesCommand() *cobra.Command {
	r := &remote{}
	c := &cobra.Command{Use: "proxies", Short: "Look at proxies, make them known, and assign hosts to them"}
	r.add(c)
	c.AddCommand(&cobra.Command{
		Use: "list", Short: "Show the proxies and how they are doing", Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return listProxies(c, r) },
	}, addProxyCommand(r), &cobra.Command{
		Use: "remove NAME", Short: "Remove a proxy; the server asks its hosts itself", Args: someArgs(1, 1, "the name of a proxy"),
		RunE: func(c *cobra.Command, args []string) error {
			text, err := r.call(c.Context(), http.MethodDelete, "/api/proxies/"+url.PathEscape(args[0]), nil, nil)
			return said(c, r, err, text, "removed "+args[0])
		},
	}, &cobra.Command{
		Use: "assign HOST [PROXY]", Short: "Have a proxy ask a host; without PROXY the server asks it", Args: someArgs(1, 2, "a host and the name of a proxy"),
		RunE: func(c *cobra.Command, args []string) error { return assignProxy(c, r, append(args, "")) },
	})
	return c
}

func said(c *cobra.Command, r *remote, err error, text []byte, line string) error {
	if err != nil {
		return err
	}
	if r.asJSON {
		_, err = c.OutOrStdout().Write(text)
		return err
	}
	_, err = fmt.Fprintln(c.OutOrStdout(), plainCell(line))
	return err
}

func assignProxy(c *cobra.Command, r *remote, args []string) error {
	id, err := r.hostID(c.Context(), args[0])
	if err != nil {
		return err
	}
	if id == "0" {
		return usagef("assign expects a host, got %s", args[0])
	}
	text, err := r.call(c.Context(), http.MethodPut, "/api/hosts/"+id+"/proxy", map[string]string{"proxy": args[1]}, nil)
	if args[1] == "" {
		return said(c, r, err, text, args[0]+" is asked by the server")
	}
	return said(c, r, err, text, args[0]+" is asked by proxy "+args[1])
}

func addProxyCommand(r *remote) *cobra.Command {
	in := struct {
		Name        string              `json:"name"`
		Description string              `json:"description"`
		AskAt       *string             `json:"ask_at,omitempty"`
		TLS         *client.TLSSettings `json:"tls,omitempty"`
	}{}
	address := ""
	secure := &client.TLSSettings{Connect: "unencrypted"}
	keyFile := ""
	var keep time.Duration
	c := &cobra.Command{
		Use: "add NAME", Short: "Make a proxy known, or change what is known of it",
		Long: "Make a proxy known under the name that it has in its configuration (Hostname), or change its description and how its connections are\n" +
			"protected. Without --accept the protection stays as it is; a new proxy is let in unencrypted.\n" +
			"A passive proxy does not connect: with --address the server asks it there, with --connect as its protection. --address '' makes it active again.",
		Example: "  tidemark proxies add branch1 --accept psk --psk-identity branch1 --psk-file branch1.psk\n" +
			"  tidemark proxies add dmz --address 10.9.0.5:10051 --connect psk --psk-identity dmz --psk-file dmz.psk",
		Args: someArgs(1, 1, "the name of a proxy"),
		RunE: func(c *cobra.Command, args []string) error {
			if (secure.PSKIdentity == "") != (keyFile == "") {
				return usagef("--psk-identity and --psk-file belong together")
			}
			if c.Flags().Changed("address") {
				in.AskAt = &address
			}
			if c.Flags().Changed("connect") {
				passive, err := isPassive(c, r, args[0], in.AskAt)
				if err != nil {
					return err
				}
				if !passive || len(secure.Accept) > 0 {
					return usagef("--connect is for a passive proxy, which has --address, or was given one before, and is not let in: leave out --accept")
				}
				secure.Accept = []string{secure.Connect}
			}
			if len(secure.Accept) == 0 && (keyFile != "" || secure.Issuer+secure.Subject != "" || keep > 0) {
				return usagef("--psk-identity, --issuer, --subject and --keep need --accept, or for a passive proxy --connect")
			}
			if keyFile != "" {
				key, err := readKeyFile(keyFile)
				if err != nil {
					return err
				}
				secure.PSK = hex.EncodeToString(key)
			}
			if keep > 0 {
				secure.Keep = keep.String()
			}
			if in.Name = args[0]; len(secure.Accept) > 0 {
				in.TLS = secure
			}
			text, err := r.call(c.Context(), http.MethodPost, "/api/proxies", in, nil)
			return said(c, r, err, text, "proxy "+args[0]+" is known")
		},
	}
	f := c.Flags()
	f.StringVar(&in.Description, "description", "", "what people should know of it")
	f.StringVar(&address, "address", "", "where the server asks a passive proxy, host:port; without it the proxy connects by itself")
	f.StringVar(&secure.Connect, "connect", "unencrypted", "how the server connects to a passive proxy: unencrypted, psk, cert")
	f.StringSliceVar(&secure.Accept, "accept", nil, "how it may connect, with commas between: unencrypted, psk, cert")
	f.StringVar(&secure.PSKIdentity, "psk-identity", "", "identity of the pre-shared key")
	f.StringVar(&keyFile, "psk-file", "", "file with the pre-shared key in hexadecimal digits")
	f.DurationVar(&keep, "keep", 0, "how long the key that is replaced stays good, at most 2160h")
	f.StringVar(&secure.Issuer, "issuer", "", "issuer that its certificate must have, such as CN=Example CA")
	f.StringVar(&secure.Subject, "subject", "", "subject that its certificate must have, such as CN=branch1,O=Example")
	return c
}

// isPassive reports whether the server asks a proxy: by the address that it is given now, or else by the one that it has.
func isPassive(c *cobra.Command, r *remote, name string, askAt *string) (bool, error) {
	if askAt != nil {
		return *askAt != "", nil
	}
	var list client.ProxyList
	if _, err := r.call(c.Context(), http.MethodGet, "/api/proxies", nil, &list); err != nil {
		return false, err
	}
	return slices.ContainsFunc(list.Proxies, func(p client.Proxy) bool { return p.Name == name && p.AskAt != "" }), nil
}

func listProxies(c *cobra.Command, r *remote) error {
	var list client.ProxyList
	text, err := r.call(c.Context(), http.MethodGet, "/api/proxies", nil, &list)
	if err != nil {
		return err
	}
	if r.asJSON {
		_, err := c.OutOrStdout().Write(text)
		return err
	}
	w := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tHOSTS\tVERSION\tADDRESS\tSEEN\tVALUES STORED\tVALUES\tBACKLOG\tACCEPTS")
	when := func(at int64) string {
		if at == 0 {
			return "never"
		}
		return time.UnixMilli(at).Format(time.DateTime)
	}
	for _, p := range list.Proxies {
		backlog := "no"
		if p.Backlog {
			backlog = "yes"
		}
		address := p.Address
		if p.AskAt != "" {
			address = "asked at " + p.AskAt
			if p.Failure != "" {
				address += " in vain: " + p.Failure
			}
		}
		if p.AlsoAt != "" {
			address += " and, under the same name, " + p.AlsoAt
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\t%d\t%s\t%s\n", plainCell(p.Name), p.Hosts, plainCell(p.Version), plainCell(address), when(p.SeenAt),
			when(p.StoredAt), p.Values, backlog, strings.Join(p.TLS.Accept, ", "))
	}
	return w.Flush()
}
