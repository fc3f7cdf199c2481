package server

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"

	"tidemark/access"
	"tidemark/alert"
	"tidemark/api"
	"tidemark/confdb"
	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/zabbixdb"
)

const (
	// maxSettingsBytes bounds the settings of a Zabbix server, with the scripts of its media types.
	maxSettingsBytes = 64 << 20
	// maxSettingsRemarks bounds the remarks on them.
	maxSettingsRemarks = 1000
)

// zabbixSettings takes settings of a Zabbix server over: people, alerting, proxies and keys.
type zabbixSettings struct {
	db      *confdb.DB
	access  *access.Control
	alerter *alert.Alerter
	report  *confdb.Report
	// target is the flag by which commands find this server.
	target string
}

// ImportSettingsOffline takes settings of a Zabbix server into the data folder of a server that does not run; a folder in use is ErrInUse.
func ImportSettingsOffline(ctx context.Context, data string, settings *zabbixdb.Settings) (report *confdb.Report, err error) {
	fsys := vfs.OS{}
	lock, err := lockFolder(fsys, data)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	db, err := confdb.Open(ctx, data, confdb.Options{})
	if err != nil {
		return nil, fmt.Errorf("open the configuration: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	control, err := access.Open(ctx, access.Options{Store: db})
	if err != nil {
		return nil, err
	}
	alerter, err := openOfflineAlerter(ctx, data, db)
	if err != nil {
		return nil, err
	}
	z := &zabbixSettings{db: db, access: control, alerter: alerter, target: "--data " + shellWord(data)}
	if report, err = z.take(ctx, settings); err != nil {
		return nil, err
	}
	changes := zabbixChanges(ctx, report)
	control.Audit(ctx, access.Everything(access.ViaCommandLine), changes.Entry("import zabbix", ""))
	return report, nil
}

func openOfflineAlerter(ctx context.Context, data string, db *confdb.DB) (*alert.Alerter, error) {
	a, err := alert.Open(ctx, alert.Options{Store: db, Objects: nothing{}, Problems: nothing{}, Names: nothing{}, ScriptFolder: filepath.Join(data, scriptFolder)})
	if err != nil {
		return nil, fmt.Errorf("open alerting: %w", err)
	}
	return a, nil
}

func zabbixChanges(ctx context.Context, report *confdb.Report) *access.Changes {
	ctx, changes := access.WithChanges(ctx)
	access.Changed(ctx, "people, alerting, proxies and keys, by import", nil, report.Counts)
	return changes
}

// importSettings is the route.
func (s *Server) importSettings(r *http.Request) (any, error) {
	settings := &zabbixdb.Settings{}
	if err := decodeStrict(r, settings); err != nil {
		return nil, err
	}
	z := &zabbixSettings{db: s.db, access: s.access, alerter: s.alerter, target: "--http " + shellWord(requestAddress(r))}
	report, err := z.take(r.Context(), settings)
	err = errors.Join(err, s.agents.refresh(r.Context()), s.proxies.refresh(r.Context()))
	if err != nil {
		return nil, apiError(err)
	}
	access.Changed(r.Context(), "people, alerting, proxies and keys, by import", nil, report.Counts)
	return report, nil
}

func (s *Server) importSettingsRoute() api.Route {
	return api.Route{
		Method: http.MethodPost, Pattern: "/api/import/zabbix", Permission: api.Administer, Handler: api.JSON(s.importSettings), MaxBodyBytes: maxSettingsBytes,
		Doc: &api.Doc{
			Summary: "Takes people, alerting, proxies and keys over that 'tidemark import zabbix' read.", Body: zabbixdb.Settings{}, Answer: confdb.Report{},
		},
	}
}

func (z *zabbixSettings) take(ctx context.Context, in *zabbixdb.Settings) (*confdb.Report, error) {
	z.report = &confdb.Report{File: "settings", Counts: []confdb.Count{}, Remarks: []confdb.Remark{}}
	for _, m := range in.Remarks {
		z.remark(m.Path, "%s", m.Reason)
	}
	for _, step := range []func(context.Context, *zabbixdb.Settings) error{z.proxies, z.hosts, z.alerting, z.groups, z.users} {
		if err := step(ctx, in); err != nil {
			return nil, err
		}
	}
	return z.report, nil
}

func (z *zabbixSettings) remark(path, format string, args ...any) {
	if len(z.report.Remarks) >= maxSettingsRemarks {
		z.report.MoreRemarks++
		return
	}
	z.report.Remarks = append(z.report.Remarks, confdb.Remark{Path: path, Reason: fmt.Sprintf(format, args...)})
}

func (z *zabbixSettings) count(kind string) *confdb.Count {
	at := slices.IndexFunc(z.report.Counts, func(c confdb.Count) bool { return c.Kind == kind })
	if at < 0 {
		at = len(z.report.Counts)
		z.report.Counts = append(z.report.Counts, confdb.Count{Kind: kind})
	}
	return &z.report.Counts[at]
}

// refused counts what cannot be, with the reason; other errors end the import.
func (z *zabbixSettings) refused(kind, path string, err error) error {
	if !errors.Is(err, confdb.ErrInvalid) && !errors.Is(err, access.ErrInvalid) && !errors.Is(err, confdb.ErrNotFound) {
		return err
	}
	z.count(kind).Refused++
	z.remark(path, "%v", err)
	return nil
}

// shellWord is a text as one word of a shell.
func shellWord(text string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-/:@", r)
	}
	if text != "" && strings.IndexFunc(text, func(r rune) bool { return !plain(r) }) < 0 && text[0] != '-' {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// requestAddress is where the caller of a request found the server.
func requestAddress(r *http.Request) string {
	if r.TLS != nil {
		return "https://" + r.Host
	}
	return r.Host
}

// tlsOf makes settings of Zabbix's.
func tlsOf(in *zabbixdb.TLS, peer model.HostID) (model.HostTLS, error) {
	t := model.HostTLS{
		HostID: peer, Connect: model.ConnectionKind(in.Connect & 7), Accept: model.ConnectionKind(in.Accept & 7), //nolint:gosec // three bits
		Identity: in.Identity, Issuer: in.Issuer, Subject: in.Subject,
	}
	if t.Connect != model.PSK && t.Accept&model.PSK == 0 {
		t.Identity = ""
		return t, nil
	}
	var err error
	if t.Key, err = hex.DecodeString(in.Key); err != nil { // not the library's error, which shows a byte of the key
		return t, fmt.Errorf("the pre-shared key: %w; expected hexadecimal digits", confdb.ErrInvalid)
	}
	return t, nil
}

func (z *zabbixSettings) setTLS(ctx context.Context, kind, path string, in *zabbixdb.TLS, peer model.HostID, have map[model.HostID]model.HostTLS) error {
	t, err := tlsOf(in, peer)
	if err != nil {
		return z.refused(kind, path, err)
	}
	old, known := have[peer]
	if known && old.Connect == t.Connect && old.Accept == t.Accept && old.Identity == t.Identity && bytes.Equal(old.Key, t.Key) && old.Issuer == t.Issuer && old.Subject == t.Subject {
		z.count(kind).Unchanged++
		return nil
	}
	if err := z.db.SetHostTLS(ctx, t, 0); err != nil {
		return z.refused(kind, path, err)
	}
	if known {
		z.count(kind).Updated++
	} else {
		z.count(kind).Created++
	}
	return nil
}

func (z *zabbixSettings) tlsNow(ctx context.Context) (map[model.HostID]model.HostTLS, error) {
	list, err := z.db.HostTLS(ctx)
	var unreadable *confdb.UnreadableError
	if err != nil && !errors.As(err, &unreadable) {
		return nil, err
	}
	have := make(map[model.HostID]model.HostTLS, len(list))
	for _, t := range list {
		have[t.HostID] = t
	}
	return have, nil
}

func (z *zabbixSettings) proxies(ctx context.Context, in *zabbixdb.Settings) error {
	if len(in.Proxies) == 0 {
		return nil
	}
	known, err := z.db.Proxies(ctx)
	if err != nil {
		return err
	}
	have, err := z.tlsNow(ctx)
	if err != nil {
		return err
	}
	for i := range in.Proxies {
		p := &in.Proxies[i]
		at := slices.IndexFunc(known, func(k model.Proxy) bool { return k.Name == p.Name })
		id, err := model.ProxyID(0), error(nil)
		switch {
		case at >= 0 && known[at].Description == p.Description && known[at].Address == p.Address:
			id = known[at].ID
			z.count("proxies").Unchanged++
		default:
			if id, err = z.db.AddProxy(ctx, model.Proxy{Name: p.Name, Description: p.Description, Address: p.Address}); err != nil {
				if err = z.refused("proxies", "proxy "+p.Name, err); err != nil {
					return err
				}
				continue
			}
			if at >= 0 {
				z.count("proxies").Updated++
			} else {
				z.count("proxies").Created++
			}
		}
		if _, set := have[id.Peer()]; !set && p.TLS.Accept == int(model.Unencrypted) {
			continue
		}
		if err := z.setTLS(ctx, "protected proxies", "proxy "+p.Name, &p.TLS, id.Peer(), have); err != nil {
			return err
		}
	}
	return nil
}

func (z *zabbixSettings) hosts(ctx context.Context, in *zabbixdb.Settings) error {
	if len(in.Hosts) == 0 {
		return nil
	}
	have, err := z.tlsNow(ctx)
	if err != nil {
		return err
	}
	for i := range in.Hosts {
		h := &in.Hosts[i]
		path, peer := "agents that register themselves", model.HostID(0)
		if h.Host != "" {
			path = "host " + h.Host
			if peer, err = z.db.HostNamed(ctx, h.Host); err != nil {
				if !errors.Is(err, confdb.ErrNotFound) {
					return err
				}
				z.remark(path, "its encryption is not taken: the host is not here; if discovery makes it, import again then")
				continue
			}
		}
		if err := z.setTLS(ctx, "protected hosts", path, &h.TLS, peer, have); err != nil {
			return err
		}
	}
	return nil
}

// alerting takes media types, receivers, maintenances and actions. Shadow mode begins with the first actions, unless actions of this
// server's own are in force, which it would silence.
func (z *zabbixSettings) alerting(ctx context.Context, in *zabbixdb.Settings) error {
	config := &alert.Config{}
	if len(in.MediaTypes) > 0 {
		media, remarks, err := alert.ImportZabbix(in.MediaTypes)
		if err != nil {
			return err
		}
		config.Media = media.Media
		for _, m := range remarks {
			path, reason, _ := strings.Cut(m, `": `)
			z.remark(strings.ReplaceAll(path, `"`, ""), "%s", reason)
		}
	}
	if len(in.Alerting) > 0 {
		var more alert.Config
		d := json.NewDecoder(bytes.NewReader(in.Alerting))
		d.DisallowUnknownFields()
		if err := d.Decode(&more); err != nil {
			return fmt.Errorf("read the actions: %w: %w", alert.ErrInvalid, err)
		}
		config.Receivers, config.Actions, config.Maintenances = more.Receivers, more.Actions, more.Maintenances
	}
	taken, remarks, err := z.alerter.TakeZabbix(ctx, config)
	if err != nil {
		return err
	}
	actions, kept := 0, 0
	for _, t := range taken {
		c := z.count(t.Kind)
		c.Created, c.Updated, c.Unchanged, c.Refused = t.Created, t.Updated, t.Unchanged, t.Refused
		if t.Kind == "actions" {
			actions, kept = t.Created, t.Updated+t.Unchanged
		}
	}
	for _, m := range remarks {
		z.remark(m.Path, "%s", m.Reason)
	}
	switch {
	case actions == 0 && kept == 0 && z.alerter.InShadow() == 0 && !z.alerter.ActionsOn():
		z.remark("alerting", "shadow mode was not begun because no action came over; an action that is made here tells people at once, unless 'tidemark shadow begin' is run before")
		return nil
	case actions == 0 || z.alerter.InShadow() != 0:
		return nil
	case z.alerter.ActionsOn():
		z.remark("alerting", "shadow mode was not begun because actions of this server are in force; 'tidemark shadow begin' silences them until the cutover")
		return nil
	}
	return z.alerter.BeginShadow(ctx)
}

// groups makes user groups that are not here; those that are stay as they are.
func (z *zabbixSettings) groups(ctx context.Context, in *zabbixdb.Settings) error {
	have := z.access.Groups()
	for _, g := range in.UserGroups {
		next := model.UserGroup{Name: g.Name}
		for _, grant := range g.Grants {
			role, _ := model.ParseRole(grant.Role)
			next.Grants = append(next.Grants, model.Grant{HostGroup: grant.HostGroup, Role: role})
		}
		at := slices.IndexFunc(have, func(k model.UserGroup) bool { return strings.EqualFold(k.Name, g.Name) })
		if at >= 0 {
			z.count("user groups").Unchanged++
			if !slices.Equal(have[at].Grants, next.Grants) {
				z.remark("user group "+g.Name, "has other rights than in Zabbix and stays as it is; change it with 'tidemark user grant'")
			}
			continue
		}
		if err := z.access.PutGroup(ctx, next); err != nil {
			if err = z.refused("user groups", "user group "+g.Name, err); err != nil {
				return err
			}
			continue
		}
		z.count("user groups").Created++
	}
	return nil
}

// users makes users that are not here; those that are stay as they are. An administrator who could not sign in is taken disabled: enabled, the
// server would have an administrator, ask everybody for a name and password, and nobody had them.
func (z *zabbixSettings) users(ctx context.Context, in *zabbixdb.Settings) error {
	have := z.access.Users()
	for _, u := range in.Users {
		if slices.ContainsFunc(have, func(k model.User) bool { return strings.EqualFold(k.Name, u.Name) }) {
			z.count("users").Unchanged++
			continue
		}
		role, _ := model.ParseRole(u.Role)
		next := &model.User{Name: u.Name, Role: role, AllHosts: u.AllHosts || role == model.Administrator, Groups: slices.Clone(u.Groups), Disabled: u.Disabled}
		locked := u.PasswordHash == "" && role == model.Administrator && !u.Disabled
		next.Disabled = u.Disabled || locked
		var err error
		if u.PasswordHash == "" {
			err = z.access.PutUser(ctx, next, nil)
		} else {
			err = z.access.PutHashedUser(ctx, next, u.PasswordHash)
		}
		if err != nil {
			if err = z.refused("users", "user "+u.Name, err); err != nil {
				return err
			}
			continue
		}
		z.count("users").Created++
		if locked {
			z.remark("user "+u.Name, "is an administrator without a password that can be taken, and is disabled here; set one and let the user in with: tidemark user passwd %[1]s %[2]s && tidemark user enable %[1]s %[2]s",
				shellWord(u.Name), z.target)
		}
	}
	return nil
}
