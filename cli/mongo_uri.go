package cli

import (
	"fmt"
	"io"
	"os"
	"strings"

	"tidemark/config"
)

// mongoURI returns the connection string of the MongoDB server that the agent asks, from the settings or from its file; empty for none.
func mongoURI(c *config.Config) (string, error) {
	if c.Agent.MongoURIFile == "" {
		return c.Agent.MongoURI, nil
	}
	file, err := os.Open(c.Agent.MongoURIFile)
	if err != nil {
		return "", fmt.Errorf("agent.mongo.uri_file: %w", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, 4096))
	if err != nil {
		return "", fmt.Errorf("agent.mongo.uri_file: %w", err)
	}
	uri := strings.TrimSpace(string(text))
	if uri == "" {
		return "", usagef("agent.mongo.uri_file %s: it is empty; expected a connection string such as mongodb://USER:PASSWORD@127.0.0.1:27017/", c.Agent.MongoURIFile)
	}
	return uri, nil
}
