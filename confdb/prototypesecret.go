package confdb

import (
	"encoding/json"
	"fmt"
	"strings"
)

// changeSecrets has change make new values of the secret macros in the body of a host prototype, which is an object of exports. A body without any stays
// as it is, byte for byte.
func changeSecrets(body string, change func(macro, value string) (string, error)) (string, error) {
	if !strings.Contains(body, "SECRET_TEXT") {
		return body, nil
	}
	var all map[string]any
	if err := json.Unmarshal([]byte(body), &all); err != nil {
		return "", fmt.Errorf("host prototype: %w", err)
	}
	list, _ := all["macros"].([]any)
	for _, one := range list {
		m, ok := one.(map[string]any)
		if !ok || m["type"] != "SECRET_TEXT" {
			continue
		}
		macro, _ := m["macro"].(string)
		value, _ := m["value"].(string)
		value, err := change(macro, value)
		if err != nil {
			return "", err
		}
		if m["value"] = value; value == "" {
			delete(m, "value")
		}
	}
	return packObject(all), nil
}

// sealPrototype seals the secret macros of a host prototype's body. One without a value, as exports have them, gets the sealed one that it has in old.
func (s *sealer) sealPrototype(body, old string) (string, error) {
	have := make(map[string]string)
	if _, err := changeSecrets(old, func(macro, value string) (string, error) {
		have[macro] = value
		return value, nil
	}); err != nil {
		return "", err
	}
	return changeSecrets(body, func(macro, value string) (string, error) {
		if value == "" {
			value = have[macro]
		}
		return s.seal(value, macroPlace(macro))
	})
}

// openPrototype returns the body of a host prototype with its secret macros opened.
func (s *sealer) openPrototype(body string) (string, error) {
	return changeSecrets(body, func(macro, value string) (string, error) { return s.shown(value, macroPlace(macro)), nil })
}
