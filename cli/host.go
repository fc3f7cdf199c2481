package cli

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"tidemark/client"
)

// newHosts is the name that stands for agents that register themselves.
const newHosts = "@new"

func hostCommand() *cobra.Command {
	r := &remote{}
	c := &cobra.Command{Use: "host", Short: "Look at hosts and set how they are reached"}
	r.add(c)
	secure := &cobra.Command{Use: "tls", Short: "How the connections of a host are protected"}
	secure.AddCommand(&cobra.Command{
		Use: "show HOST", Short: "Show the settings; keys are not shown", Args: someArgs(1, 1, "a host"),
		RunE: func(c *cobra.Command, args []string) error { return showHostTLS(c, r, args[0]) },
	}, setHostTLSCommand(r), &cobra.Command{
		Use: "off HOST", Short: "Connect and take values unencrypted only", Args: someArgs(1, 1, "a host"),
		RunE: func(c *cobra.Command, args []string) error {
			return putHostTLS(c, r, args[0], &client.TLSSettings{Connect: "unencrypted", Accept: []string{"unencrypted"}})
		},
	})
	c.AddCommand(secure, runCommand(r), &cobra.Command{
		Use: "interfaces HOST", Short: "Show the interfaces of a host and whether they answer", Args: someArgs(1, 1, "a host"),
		RunE: func(c *cobra.Command, args []string) error { return showInterfaces(c, r, args[0]) },
	})
	return c
}

func setHostTLSCommand(r *remote) *cobra.Command {
	in := &client.TLSSettings{}
	keyFile := ""
	var keep time.Duration
	c := &cobra.Command{
		Use: "set HOST", Short: "Set the settings",
		Long: "Set how the server connects to the agent of a host (--connect) and how values may come for it (--accept). HOST is the host's technical name, or\n" +
			newHosts + " for agents that register themselves. With --keep a key that is replaced stays good for that long.",
		Example: "  tidemark host tls set db1 --connect psk --accept psk --psk-identity db1 --psk-file db1.psk --keep 24h\n" +
			"  tidemark host tls set web1 --connect cert --accept cert --subject 'CN=web1,O=Example'",
		Args: someArgs(1, 1, "a host"),
		RunE: func(c *cobra.Command, args []string) error {
			if (in.PSKIdentity == "") != (keyFile == "") {
				return usagef("--psk-identity and --psk-file belong together")
			}
			if keyFile != "" {
				key, err := readKeyFile(keyFile)
				if err != nil {
					return err
				}
				in.PSK = hex.EncodeToString(key)
			}
			if keep > 0 {
				in.Keep = keep.String()
			}
			return putHostTLS(c, r, args[0], in)
		},
	}
	f := c.Flags()
	f.StringVar(&in.Connect, "connect", "unencrypted", "how the server connects to the agent: unencrypted, psk or cert")
	f.StringSliceVar(&in.Accept, "accept", []string{"unencrypted"}, "how values may come, with commas between: unencrypted, psk, cert")
	f.StringVar(&in.PSKIdentity, "psk-identity", "", "identity of the pre-shared key")
	f.StringVar(&keyFile, "psk-file", "", "file with the pre-shared key in hexadecimal digits")
	f.DurationVar(&keep, "keep", 0, "how long the key that is replaced stays good, at most 2160h")
	f.StringVar(&in.Issuer, "issuer", "", "issuer that the agent's certificate must have, such as CN=Example CA")
	f.StringVar(&in.Subject, "subject", "", "subject that the agent's certificate must have, such as CN=web1,O=Example")
	return c
}

// hostID finds a host by its technical name.
func (r *remote) hostID(ctx context.Context, name string) (string, error) {
	if name == newHosts {
		return "0", nil
	}
	c, err := newClient(ctx, r.http, nil)
	if err != nil {
		return "", err
	}
	h, err := c.HostByName(ctx, name)
	if err != nil {
		return "", r.missing(err)
	}
	return h.ID, nil
}

// missing gives errors of looking for an object by name the words of commands.
func (r *remote) missing(err error) error {
	if errors.Is(err, client.ErrNoObject) {
		return err
	}
	return toldBy(r.http, err)
}

func showHostTLS(c *cobra.Command, r *remote, name string) error {
	id, err := r.hostID(c.Context(), name)
	if err != nil {
		return err
	}
	var t client.TLSSettings
	text, err := r.call(c.Context(), http.MethodGet, "/api/hosts/"+id+"/tls", nil, &t)
	if err != nil {
		return err
	}
	return printHostTLS(c, r, &t, text)
}

func putHostTLS(c *cobra.Command, r *remote, name string, in *client.TLSSettings) error {
	id, err := r.hostID(c.Context(), name)
	if err != nil {
		return err
	}
	var t client.TLSSettings
	text, err := r.call(c.Context(), http.MethodPut, "/api/hosts/"+id+"/tls", in, &t)
	if err != nil {
		return err
	}
	return printHostTLS(c, r, &t, text)
}

func printHostTLS(c *cobra.Command, r *remote, t *client.TLSSettings, text []byte) error {
	if r.asJSON {
		_, err := c.OutOrStdout().Write(text)
		return err
	}
	w := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(w, "%s\t%s\n", name, plainCell(value))
		}
	}
	row("connect", t.Connect)
	row("accept", strings.Join(t.Accept, ", "))
	row("psk identity", t.PSKIdentity)
	if t.OldPSKUntil > 0 {
		row("old psk", t.OldPSKIdentity+" until "+time.UnixMilli(t.OldPSKUntil).Format(time.DateTime))
	}
	row("issuer", t.Issuer)
	row("subject", t.Subject)
	return w.Flush()
}

func showInterfaces(c *cobra.Command, r *remote, name string) error {
	id, err := r.hostID(c.Context(), name)
	if err != nil {
		return err
	}
	var list struct {
		Interfaces []struct {
			Type, Address, Port, State, Error string
			Main                              bool
			FailingSince                      int64 `json:"failing_since"`
		}
	}
	text, err := r.call(c.Context(), http.MethodGet, "/api/hosts/"+id+"/interfaces", nil, &list)
	if err != nil {
		return err
	}
	if r.asJSON {
		_, err := c.OutOrStdout().Write(text)
		return err
	}
	w := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TYPE\tADDRESS\tPORT\tMAIN\tSTATE\tFAILING SINCE\tERROR")
	for _, i := range list.Interfaces {
		since := ""
		if i.FailingSince > 0 {
			since = time.UnixMilli(i.FailingSince).Format(time.DateTime)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%v\t%s\t%s\t%s\n", i.Type, plainCell(i.Address), plainCell(i.Port), i.Main, i.State, since, plainCell(i.Error))
	}
	return w.Flush()
}
