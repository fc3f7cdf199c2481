// Package yamlload reads YAML that came from outside.
package yamlload

import (
	"fmt"

	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"
)

const (
	// MaxAliased is how many values the aliases of one document may stand for, each counted as often as it is used. A few hundred bytes can stand for
	// billions.
	MaxAliased = 10_000
	// maxDepth is how deep values may be nested.
	maxDepth = 256
)

// Load reads one document into a value, as yaml.Load does, with bounds on nesting and on what aliases stand for. Into a yaml.Node aliases come as they are:
// whoever follows them must count what they stand for.
func Load(text []byte, into any, options ...yaml.Option) error {
	limits := loaderlimits.New(loaderlimits.DepthValue(maxDepth), loaderlimits.AliasFunc(func(aliased, _ int) error {
		if aliased > MaxAliased {
			return fmt.Errorf("aliases stand for more than %d values; write them out, or split the file", MaxAliased)
		}
		return nil
	}))
	return yaml.Load(text, into, append(options, yaml.WithPlugin(limits))...)
}
