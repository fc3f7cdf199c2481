package server

import (
	"bufio"
	"net"
	"os"
	"slices"
	"strings"
	"testing"

	"tidemark/api"
)

// routesFile lists every route with what its caller needs: one line "METHOD PATTERN permission hosts", where hosts is "per-host" for
// routes that show callers only the hosts they may see, and "all-hosts" for those that need all of them.
const routesFile = "testdata/routes.txt"

func routeLine(r api.Route) string {
	hosts := "all-hosts"
	if r.PerHost {
		hosts = "per-host"
	}
	return strings.Join([]string{r.Method, r.Pattern, string(r.Permission), hosts}, " ")
}

// openForTest opens a server in a new folder whose Run is not called.
func openForTest(t *testing.T) *Server {
	t.Helper()
	listen := func() net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		return l
	}
	s, err := Open(t.Context(), Options{Data: t.TempDir(), HTTP: listen(), Trapper: listen(), Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// TestRoutes_declared keeps what every route needs in a file that is read by people when it changes.
func TestRoutes_declared(t *testing.T) {
	file, err := os.Open(routesFile)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var declared []string
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if line := strings.TrimSpace(lines.Text()); line != "" && !strings.HasPrefix(line, "#") {
			declared = append(declared, line)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if !slices.IsSorted(declared) {
		t.Errorf("%s: expected its lines in alphabetical order", routesFile)
	}
	known := []api.Permission{api.Public, api.View, api.Operate, api.Edit, api.Administer}
	var served []string
	for _, r := range openForTest(t).routes() {
		if !slices.Contains(known, r.Permission) {
			t.Errorf("route %s %s has the permission %q: set api.Route.Permission to one of %q", r.Method, r.Pattern, r.Permission, known)
		}
		line := routeLine(r)
		served = append(served, line)
		if !slices.Contains(declared, line) {
			t.Errorf("a route is not declared. Add this line to server/%s, in alphabetical order:\n%s\nSet PerHost only when the handler leaves out hosts that the caller may not see (in api/rest: a.handle), and add a request for a foreign host to foreignCalls in server/permissions_test.go.", routesFile, line)
		}
	}
	for _, line := range declared {
		if !slices.Contains(served, line) {
			t.Errorf("server/%s declares a route that is not served like that; take the line out or correct it:\n%s", routesFile, line)
		}
	}
}
