package lint

import (
	_ "embed"
	"os/exec"
	"strings"
	"testing"
)

//go:embed layers.txt
var layersText string

const module = "tidemark/"

// rules are the parsed layers.txt: the line of each root, and the denials.
type rules struct {
	layer  map[string]int
	denied map[[2]string]bool
}

func parseRules(text string) rules {
	r := rules{layer: map[string]int{}, denied: map[[2]string]bool{}}
	for i, line := range strings.Split(text, "\n") {
		f := strings.Fields(line)
		switch {
		case len(f) == 0 || f[0] == "#":
		case f[0] == "!":
			r.denied[[2]string{f[1], f[2]}] = true
		default:
			for _, root := range f {
				r.layer[root] = i
			}
		}
	}
	return r
}

// root returns the longest listed prefix of pkg, or "".
func (r rules) root(pkg string) string {
	for {
		if _, ok := r.layer[pkg]; ok {
			return pkg
		}
		i := strings.LastIndexByte(pkg, '/')
		if i < 0 {
			return ""
		}
		pkg = pkg[:i]
	}
}

// complaint returns why pkg may not import dep, or "".
func (r rules) complaint(pkg, dep string) string {
	from, to := r.root(pkg), r.root(dep)
	if from == "" {
		return pkg + " is in no layer of layers.txt"
	}
	if from == to {
		return ""
	}
	top, _, _ := strings.Cut(to, "/")
	if to == "" || r.layer[to] >= r.layer[from] || r.denied[[2]string{from, top}] {
		return pkg + " imports " + dep + ": " + from + " may not import " + to
	}
	return ""
}

func TestLayers(t *testing.T) {
	r := parseRules(layersText)
	out, err := exec.Command("go", "list", "-f", "{{.ImportPath}} {{join .Imports \" \"}}", module+"...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		pkg := strings.TrimPrefix(f[0], module)
		if c := r.complaint(pkg, pkg); c != "" {
			t.Error(c)
		}
		for _, imp := range f[1:] {
			if dep, ours := strings.CutPrefix(imp, module); ours {
				if c := r.complaint(pkg, dep); c != "" {
					t.Error(c)
				}
			}
		}
	}
}

func TestLayerRules(t *testing.T) {
	r := parseRules(layersText)
	f := func(pkg, dep string, allowed bool) {
		t.Helper()
		if got := r.complaint(pkg, dep) == ""; got != allowed {
			t.Errorf("%s imports %s: allowed is %v, want %v", pkg, dep, got, allowed)
		}
	}
	f("preproc", "histcache", false)
	f("trigger", "storage/memory", false)
	f("wire/zbx", "storage", false)
	f("storage/memory", "storage/dbengine", false)
	f("storage/dbengine", "histcache", false)
	f("model", "wire/zbx", false)
	f("api/rest", "storage", false)
	f("api/rest", "confdb", false)
	f("agent", "storage/memory", false)
	f("internal/vfs", "model", false)
	f("bench", "server", false)
	f("nowhere", "model", false)
	f("histsync", "storage", true)
	f("api/rest", "query", true)
	f("storage/dbengine/page", "storage/dbengine/extent", true)
	f("server", "api/rest", true)
}
