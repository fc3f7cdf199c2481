// Command tidemark is the server, the agent, the MongoDB request monitor and the store tools in one binary.
package main

import (
	"os"

	"tidemark/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
