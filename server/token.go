package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"

	"tidemark/api"
)

// tokenGuard lets only requests with the token through, but for health. The token comes as a bearer token, or as the password of
// basic authentication, which browsers and Grafana know to send; the user's name does not matter.
func tokenGuard(token string, next http.Handler) http.Handler {
	want := sha256.Sum256([]byte(token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/-/healthy" || r.URL.Path == "/-/ready" {
			next.ServeHTTP(w, r)
			return
		}
		given, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !bearer {
			_, given, _ = r.BasicAuth()
		}
		got := sha256.Sum256([]byte(given))
		if subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			w.Header().Set("WWW-Authenticate", `Basic realm="Tidemark", charset="UTF-8"`)
			api.WriteError(w, &api.Error{
				Status: http.StatusUnauthorized, Code: "unauthorized",
				Message: "a token is needed: send it as \"Authorization: Bearer TOKEN\", or as the password of basic authentication",
			})
			return
		}
		next.ServeHTTP(w, r)
	})
}
