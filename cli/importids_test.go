package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Without a token the JSON-RPC answers with Zabbix's words; people read what other commands say.
func TestRPC_needsToken(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","error":{"code":-32602,"message":"Invalid params.","data":"Not authorized."},"id":1}`)
	}))
	defer s.Close()
	rpc := &rpcClient{server: serverClient{address: strings.TrimPrefix(s.URL, "http://")}}
	_, err := ownObjects(t.Context(), rpc)
	if err == nil || !strings.Contains(err.Error(), "no token was sent and one is needed: give it with --token-file FILE") {
		t.Errorf("it says %v", err)
	}
}
