package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The hard limits; the aims are 60 lines and 400 lines.
const (
	maxFunctionLines = 100
	maxFileLines     = 900
	maxTestFileLines = 1500
)

// sourceFile is one parsed Go file of the project.
type sourceFile struct {
	path  string // relative to the project's root
	lines int
	file  *ast.File
	set   *token.FileSet
}

func (f sourceFile) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }

// sources parses every Go file of the project.
func sources(t *testing.T) []sourceFile {
	t.Helper()
	root := filepath.Join("..", "..")
	var files []sourceFile
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if name == "node_modules" || name == "testdata" || name == "data" || name == "dist" || strings.HasPrefix(name, ".") && path != root {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, text, parser.ParseComments)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		files = append(files, sourceFile{path: filepath.ToSlash(rel), lines: strings.Count(string(text), "\n"), file: file, set: set})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 20 {
		t.Fatalf("found only %d Go files; the walk is wrong", len(files))
	}
	return files
}

// generated reports whether the file says that it is generated.
func generated(f sourceFile) bool { return ast.IsGenerated(f.file) }

func TestSizes(t *testing.T) {
	for _, f := range sources(t) {
		if generated(f) {
			continue
		}
		most := maxFileLines
		if f.isTest() {
			most = maxTestFileLines
		}
		if f.lines > most {
			t.Errorf("%s has %d lines, the limit is %d: would each half find its own name?", f.path, f.lines, most)
		}
		if f.isTest() {
			continue
		}
		for _, d := range f.file.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			n := f.set.Position(fn.End()).Line - f.set.Position(fn.Pos()).Line + 1
			if n > maxFunctionLines {
				t.Errorf("%s: %s has %d lines, the limit is %d", f.path, fn.Name.Name, n, maxFunctionLines)
			}
		}
	}
}

func TestPackageComments(t *testing.T) {
	commented := map[string]bool{}
	for _, f := range sources(t) {
		if f.isTest() {
			continue
		}
		dir := filepath.Dir(f.path)
		commented[dir] = commented[dir] || f.file.Doc != nil && len(f.file.Doc.Text()) > 20
	}
	for dir, ok := range commented {
		if !ok {
			t.Errorf("package %s has no package comment", dir)
		}
	}
}

func TestExportedNamesAreDocumented(t *testing.T) {
	for _, f := range sources(t) {
		if f.isTest() || generated(f) {
			continue
		}
		for _, d := range f.file.Decls {
			checkDoc(t, f, d)
		}
	}
}

func checkDoc(t *testing.T, f sourceFile, d ast.Decl) {
	t.Helper()
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && d.Doc == nil && exportedReceiver(d) {
			t.Errorf("%s: %s has no comment", f.path, d.Name.Name)
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				if s.Name.IsExported() && d.Doc == nil && s.Doc == nil {
					t.Errorf("%s: type %s has no comment", f.path, s.Name.Name)
				}
			case *ast.ValueSpec:
				if s.Names[0].IsExported() && d.Doc == nil && s.Doc == nil && s.Comment == nil {
					t.Errorf("%s: %s has no comment", f.path, s.Names[0].Name)
				}
			}
		}
	}
}

// exportedReceiver reports whether a function is no method or one of an exported type.
func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return true
	}
	typ := d.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	if index, ok := typ.(*ast.IndexExpr); ok {
		typ = index.X
	}
	id, ok := typ.(*ast.Ident)
	return ok && id.IsExported()
}

// forbiddenNames are package names that say nothing.
var forbiddenNames = []string{"util", "utils", "common", "base", "helper", "helpers", "misc", "types", "manager"}

func TestHouseRules(t *testing.T) {
	for _, f := range sources(t) {
		for _, name := range forbiddenNames {
			if f.file.Name.Name == name {
				t.Errorf("%s: package name %s says nothing about what is in it", f.path, name)
			}
		}
		if f.isTest() {
			continue
		}
		for _, d := range f.file.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				t.Errorf("%s: init is not used here; build things where they are used", f.path)
			}
		}
		for _, imp := range f.file.Imports {
			if imp.Path.Value == `"testing"` && !strings.HasPrefix(f.path, "storage/storagetest/") && !strings.HasPrefix(f.path, "test/") {
				t.Errorf("%s: code that is no test imports testing", f.path)
			}
		}
	}
}
