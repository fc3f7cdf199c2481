package poller

import (
	"testing"

	"tidemark/model"
)

func TestWithoutSecrets(t *testing.T) {
	const reason = `service "hunter2" is not known on hunter2:22`
	f := func(c *model.Collect, want string) {
		t.Helper()
		if got := string(withoutSecrets([]byte(reason), &model.Item{Collect: c})); got != want {
			t.Errorf("%+v: %s, want %s", c, got, want)
		}
	}
	f(nil, reason)
	f(&model.Collect{}, reason)
	f(&model.Collect{KeySecrets: []model.Macro{{Name: "{$EMPTY}"}}}, reason)
	f(&model.Collect{KeySecrets: []model.Macro{{Name: "{$PW}", Value: "hunter2"}, {Name: "{$PORT}", Value: "22"}}}, `service "{$PW}" is not known on {$PW}:{$PORT}`)
}
