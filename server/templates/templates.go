// Package templates holds the templates that are shipped with the product, in the export format of Zabbix 6.0.
//
// They are imported when the server starts. An object keeps its uuid for ever: by it a newer version of a template
// replaces the older one in a database.
package templates

import (
	"embed"
	"io/fs"
)

//go:embed *.yaml
var files embed.FS

// Files returns the templates' files, all in the top folder.
func Files() fs.FS { return files }
