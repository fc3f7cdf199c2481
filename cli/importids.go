package cli

import (
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"tidemark/client"
	"tidemark/zabbixdb"
)

func importIDsCommand() *cobra.Command {
	from := &zabbixFlags{}
	client := serverClient{address: defaultHTTP}
	c := &cobra.Command{
		Use:   "ids --dsn postgres://…|mysql://… --http ADDR",
		Short: "Say which id of a Zabbix server is which here",
		Long: "Lists host groups, templates, hosts, items and triggers of a Zabbix database as CSV: kind, Zabbix's id, the id that the server at --http gives it, host and name.\n" +
			"With it ids that scripts have stored can be changed. What is not here, or several times under one name, has no id. The database is only read.",
		Example: "  tidemark import zabbix ids --dsn-file dsn.txt --http 127.0.0.1:8420 > ids.csv",
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			dsn, err := from.address()
			if err == nil {
				err = listIDs(c.Context(), dsn, &rpcClient{server: client}, c.OutOrStdout(), c.ErrOrStderr())
			}
			if err != nil {
				return fmt.Errorf("import zabbix ids: %w", err)
			}
			return nil
		},
	}
	f := c.Flags()
	f.StringVar(&from.dsn, "dsn", "", "address of Zabbix's database: postgres://user:password@host:port/database or mysql://user:password@host:port/database")
	f.StringVar(&from.dsnFile, "dsn-file", "", "file whose first line is the address, so that the password is not seen in the list of processes")
	f.StringVar(&client.address, "http", defaultHTTP, "address of a running server, host:port or https://host:port")
	return c
}

// kindTemplateGroup is a kind that only this server has apart from host groups.
const kindTemplateGroup = "template group"

// object is what an object is found by in both programs.
type object struct{ kind, host, name string }

// ambiguous is the id of what is there several times.
const ambiguous = "ambiguous"

// listIDs writes the table, and on notes how many have no id here.
func listIDs(ctx context.Context, dsn string, rpc *rpcClient, out, notes io.Writer) (err error) {
	own, err := ownObjects(ctx, rpc)
	if err != nil {
		return err
	}
	source, err := zabbixdb.Open(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	w := csv.NewWriter(out)
	if err := w.Write([]string{"kind", "zabbix_id", "id", "host", "name"}); err != nil {
		return err
	}
	missing := map[string]int{}
	err = source.Objects(ctx, func(o zabbixdb.Object) error {
		id := own[object{o.Kind, o.Host, o.Name}]
		if id == "" && o.Kind == zabbixdb.KindGroup { // Zabbix 6.0 has one kind for groups of hosts and of templates
			id = own[object{kindTemplateGroup, "", o.Name}]
		}
		if id == "" || id == ambiguous {
			missing[o.Kind]++
			id = ""
		}
		return w.Write([]string{o.Kind, strconv.FormatInt(o.ID, 10), id, o.Host, o.Name})
	})
	w.Flush()
	for _, kind := range slices.Sorted(maps.Keys(missing)) {
		fmt.Fprintf(notes, "%d of kind %s have no id here: they are not here, or several have that name\n", missing[kind], kind)
	}
	return errors.Join(err, w.Error())
}

// hostsAtOnce bounds how many hosts one call asks about.
const hostsAtOnce = 100

// ownObjects are the ids of the server.
func ownObjects(ctx context.Context, rpc *rpcClient) (map[object]string, error) {
	own := map[object]string{}
	note := func(o object, id string) {
		if have, ok := own[o]; ok && have != id {
			id = ambiguous
		}
		own[o] = id
	}
	var list []rpcObject
	for _, get := range []struct{ kind, method, id, name string }{
		{zabbixdb.KindGroup, "hostgroup.get", "groupid", "name"}, {kindTemplateGroup, "templategroup.get", "groupid", "name"}, {zabbixdb.KindTemplate, "template.get", "templateid", "host"}, {zabbixdb.KindHost, "host.get", "hostid", "host"},
	} {
		list = nil
		if err := rpc.call(ctx, get.method, map[string]any{"output": []string{get.id, get.name}}, &list); err != nil {
			return nil, err
		}
		for _, o := range list {
			note(object{kind: get.kind, name: cmp.Or(o.Name, o.Host)}, cmp.Or(o.GroupID, o.TemplateID, o.HostID))
		}
	}
	for hosts := range slices.Chunk(list, hostsAtOnce) {
		if err := ownOfHosts(ctx, rpc, hosts, note); err != nil {
			return nil, err
		}
	}
	return own, nil
}

// ownOfHosts notes the items and triggers of hosts. A trigger of several hosts is found by each.
func ownOfHosts(ctx context.Context, rpc *rpcClient, hosts []rpcObject, note func(object, string)) error {
	ids := make([]string, len(hosts))
	for i, h := range hosts {
		ids[i] = h.HostID
	}
	for _, get := range []struct{ kind, method, id, name string }{
		{zabbixdb.KindItem, "item.get", "itemid", "key_"}, {zabbixdb.KindTrigger, "trigger.get", "triggerid", "description"},
	} {
		var list []rpcObject
		if err := rpc.call(ctx, get.method, map[string]any{"output": []string{get.id, get.name}, "hostids": ids, "selectHosts": []string{"host"}}, &list); err != nil {
			return err
		}
		for _, o := range list {
			for _, h := range o.Hosts {
				note(object{get.kind, h.Host, cmp.Or(o.Key, o.Description)}, cmp.Or(o.ItemID, o.TriggerID))
			}
		}
	}
	return nil
}

// rpcObject is what the JSON-RPC answers of an object; each kind has some of the fields.
type rpcObject struct {
	GroupID     string      `json:"groupid"`
	TemplateID  string      `json:"templateid"`
	HostID      string      `json:"hostid"`
	ItemID      string      `json:"itemid"`
	TriggerID   string      `json:"triggerid"`
	Host        string      `json:"host"`
	Name        string      `json:"name"`
	Key         string      `json:"key_"`
	Description string      `json:"description"`
	Hosts       []rpcObject `json:"hosts"`
}

// rpcClient calls a server over Zabbix's JSON-RPC.
type rpcClient struct{ server serverClient }

func (r *rpcClient) call(ctx context.Context, method string, params, into any) error {
	var answer struct {
		Result json.RawMessage `json:"result"`
		Error  *struct {
			Message string `json:"message"`
			Data    string `json:"data"`
		} `json:"error"`
	}
	err := r.server.call(ctx, http.MethodPost, "/api_jsonrpc.php", map[string]any{"jsonrpc": "2.0", "method": method, "params": params, "id": 1}, &answer)
	if err != nil {
		return err
	}
	if answer.Error != nil && answer.Error.Data == "Not authorized." { // Zabbix's words for a call without a token, with the status 200
		return toldBy(r.server.address, &client.Error{Status: http.StatusUnauthorized, Message: answer.Error.Data})
	}
	if answer.Error != nil {
		return fmt.Errorf("%s: %s %s", method, answer.Error.Message, answer.Error.Data)
	}
	if err := json.Unmarshal(answer.Result, into); err != nil {
		return fmt.Errorf("%s: the answer cannot be read: %w", method, err)
	}
	return nil
}
