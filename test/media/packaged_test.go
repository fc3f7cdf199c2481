package media

import (
	"compress/gzip"
	"io"
	"os"
	"strings"
	"testing"
)

// data is Zabbix's initial data, which install.sh unpacks.
const data = "/var/cache/tidemark-test/zabbix/usr/share/zabbix-server-pgsql/data.sql.gz"

// row is one row of a table by column.
type row map[string]string

// rows reads the rows of a table out of INSERT statements with one row each.
func rows(t *testing.T, sql, table string) []row {
	t.Helper()
	var list []row
	for {
		at := strings.Index(sql, "INSERT INTO "+table+" (")
		if at < 0 {
			return list
		}
		columns, rest, _ := strings.Cut(sql[at+len("INSERT INTO ")+len(table)+2:], ") values (")
		r := row{}
		for _, column := range strings.Split(columns, ",") {
			var value string
			value, rest = literal(rest)
			r[column] = value
			rest = rest[1:] // the comma, or the closing parenthesis
		}
		list = append(list, r)
		sql = rest
	}
}

// literal reads a value: '…' with doubled quotes, E'…' with backslashes too, or a bare word.
func literal(text string) (value, rest string) {
	escapes := strings.HasPrefix(text, "E'")
	if !escapes && text[0] != '\'' {
		end := strings.IndexAny(text, ",)")
		return text[:end], text[end:]
	}
	i := strings.IndexByte(text, '\'') + 1
	var b strings.Builder
	for {
		switch c := text[i]; {
		case c == '\'' && text[i+1] == '\'':
			b.WriteByte('\'')
			i += 2
		case c == '\'':
			return b.String(), text[i+1:]
		case c == '\\' && escapes:
			if next, ok := map[byte]byte{'n': '\n', 'r': '\r', 't': '\t'}[text[i+1]]; ok {
				b.WriteByte(next)
			} else {
				b.WriteByte(text[i+1])
			}
			i += 2
		default:
			b.WriteByte(c)
			i++
		}
	}
}

// export makes what Zabbix's page exports of the media types in its tables.
func export(t *testing.T) object {
	t.Helper()
	f, err := os.Open(data)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	sql := string(text)
	parameters, messages := map[string][]object{}, map[string][]object{}
	for _, p := range rows(t, sql, "media_type_param") {
		parameters[p["mediatypeid"]] = append(parameters[p["mediatypeid"]], object{"name": p["name"], "value": p["value"]})
	}
	for _, m := range rows(t, sql, "media_type_message") {
		messages[m["mediatypeid"]] = append(messages[m["mediatypeid"]], object{
			"event_source": m["eventsource"], "operation_mode": m["recovery"], "subject": m["subject"], "message": m["message"],
		})
	}
	var list []object
	for _, m := range rows(t, sql, "media_type") {
		if m["type"] != "4" {
			continue // only webhooks
		}
		list = append(list, object{
			"name": m["name"], "type": "WEBHOOK", "script": strings.ReplaceAll(m["script"], "\r\n", "\n"), "timeout": m["timeout"], "process_tags": m["process_tags"],
			"show_event_menu": m["show_event_menu"], "event_menu_url": m["event_menu_url"], "event_menu_name": m["event_menu_name"],
			"parameters": parameters[m["mediatypeid"]], "message_templates": messages[m["mediatypeid"]],
		})
	}
	return object{"zabbix_export": object{"version": "6.0", "media_types": list}}
}
