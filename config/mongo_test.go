package config

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParse_mongo(t *testing.T) {
	c, err := Parse("mongo.yaml", []byte("agent:\n  mongo:\n    interface: eth0\n    ports: 27017,27018\n    uri_file: /keys/mongo\n    interval: 1s\n    plans: 0s\n"))
	if err != nil {
		t.Fatal(err)
	}
	if a := c.Agent; a.MongoInterface != "eth0" || !slices.Equal(a.MongoPorts, []uint16{27017, 27018}) || a.MongoURIFile != "/keys/mongo" || a.MongoInterval != time.Second || a.MongoPlans != 0 || Default().Agent.MongoPlans != 10*time.Minute {
		t.Errorf("got %+v", a)
	}
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	f := func(text, want string) {
		t.Helper()
		c, err := Parse("mongo.yaml", []byte("agent:\n  mongo:\n"+text))
		if err == nil {
			err = c.Validate()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	f("    interval: 1500ms\n", "expected whole seconds")
	f("    interval: 2h\n", "expected whole seconds")
	f("    uri: mongodb://a/\n    uri_file: b\n", "not both")
	f("    plans: 5s\n", "expected 0s for never, or 10s to 24h")
	f("    ports: 0\n", "expected port numbers")
}
