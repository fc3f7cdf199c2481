package server

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tidemark/api"
	"tidemark/collect"
	"tidemark/confdb"
	"tidemark/model"
)

func TestAgentAccess(t *testing.T) {
	ctx := context.Background()
	db, err := confdb.Open(ctx, t.TempDir(), confdb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	host, _, err := db.RegisterHost(ctx, "h1", "")
	if err != nil {
		t.Fatal(err)
	}
	a, err := openAgentAccess(ctx, db, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	plain := collect.Peer{Kind: model.Unencrypted}
	if !a.keys.Allows(host, plain) {
		t.Error("a host without settings is not open to unencrypted peers")
	}
	key := bytes.Repeat([]byte{1}, 16)
	if err := db.SetHostTLS(ctx, model.HostTLS{HostID: host, Connect: model.PSK, Accept: model.PSK, Identity: "one", Key: key}, 0); err != nil {
		t.Fatal(err)
	}
	if err := a.refresh(ctx); err != nil {
		t.Fatal(err)
	}
	if a.keys.Allows(host, plain) || len(a.trapperTLS().Keys.Keys("one")) != 1 || a.trapperTLS().Certificates != nil {
		t.Error("the settings are not in force")
	}
	if k := a.kinds(); len(k) != 1 || k[0].Name != "agent" {
		t.Errorf("kinds %+v", k)
	}
}

func TestAgentAccess_routes(t *testing.T) {
	ctx := context.Background()
	db, err := confdb.Open(ctx, t.TempDir(), confdb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	host, _, err := db.RegisterHost(ctx, "h1", "")
	if err != nil {
		t.Fatal(err)
	}
	a, err := openAgentAccess(ctx, db, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	handler := api.NewHandler(a.routes(), http.NotFoundHandler(), api.Options{Guard: api.Guard{AnyHost: func() bool { return true }}})
	f := func(method, path, body string, status int, want string) {
		t.Helper()
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != status || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s %s %s: %d %s, want %d %s", method, path, body, w.Code, w.Body, status, want)
		}
		if strings.Contains(w.Body.String(), "0123456789abcdef") {
			t.Errorf("the answer shows the key: %s", w.Body)
		}
	}
	path := fmt.Sprintf("/api/hosts/%d/tls", host)
	f("GET", path, "", 200, `"accept":["unencrypted"]`)
	f("PUT", path, `{"connect":"psk","accept":["psk"],"psk_identity":"h1","psk":"0123456789abcdef0123456789abcdef"}`, 200, `"accept":["psk"],"psk_identity":"h1"`)
	f("PUT", path, `{"connect":"psk","accept":["psk","unencrypted"],"psk_identity":"h1b","psk":"ffff456789abcdee0123456789abcdee","keep":"24h"}`, 200, `"old_psk_identity":"h1"`)
	f("GET", path, "", 200, `"psk_identity":"h1b"`)
	f("PUT", path, `{"connect":"psk","accept":["psk"],"psk_identity":"h1","psk":"0123"}`, 400, "PSK has 4 hexadecimal digits")
	f("PUT", path, `{"connect":"psk","accept":["psk"],"psk_identity":"h1","psk":"zz"}`, 400, "expected hexadecimal digits")
	f("PUT", path, `{"connect":"both","accept":["psk"]}`, 400, "expected unencrypted, psk or cert")
	f("PUT", path, `{"connect":"psk","accept":["tls"]}`, 400, "expected unencrypted, psk or cert")
	f("PUT", path, `{"connect":"unencrypted","accept":["unencrypted"],"keep":"1y"}`, 400, "expected up to 2160h")
	f("PUT", path, `{"connect":"unencrypted","accept":[]}`, 400, "expected a sum")
	f("PUT", "/api/hosts/99/tls", `{"connect":"unencrypted","accept":["unencrypted"]}`, 404, "no host")
	f("PUT", "/api/hosts/x/tls", `{}`, 400, "expected a number")
	f("PUT", "/api/hosts/0/tls", `{"connect":"unencrypted","accept":["unencrypted"]}`, 200, "unencrypted")
}
