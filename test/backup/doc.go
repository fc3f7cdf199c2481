// Package backup tests backups with the binary and a real S3 server, which install.sh builds.
package backup
