package zbx

import (
	"bytes"
	"testing"
	"time"
)

func TestPassiveRequest(t *testing.T) {
	got := string(AppendPassiveRequest(nil, `vfs.fs.size["/",free]`, 3*time.Second))
	want := `{"request":"passive checks","data":[{"key":"vfs.fs.size[\"/\",free]","timeout":"3s"}]}`
	if got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestDecodePassiveText(t *testing.T) {
	f := func(body string, kind PassiveKind, text string) {
		t.Helper()
		a := DecodePassiveText([]byte(body))
		if a.Kind != kind || string(a.Text) != text {
			t.Errorf("%q: %d %q, want %d %q", body, a.Kind, a.Text, kind, text)
		}
	}
	f("1", PassiveValue, "1")
	f("", PassiveValue, "")
	f("  a b \r\n", PassiveValue, "a b")
	f("ZBX_NOTSUPPORTED", PassiveNotSupported, "the agent does not support the key")
	f("ZBX_NOTSUPPORTED\x00Unsupported item key.", PassiveNotSupported, "Unsupported item key.")
	f("ZBX_NOTSUPPORTED is text", PassiveValue, "ZBX_NOTSUPPORTED is text")
	f("ZBX_ERROR", PassiveNone, "")
	f(`{"a":1}`, PassiveValue, `{"a":1}`)
}

func TestDecodePassiveJSON(t *testing.T) {
	f := func(body string, kind PassiveKind, text string) {
		t.Helper()
		a, asJSON, err := DecodePassiveJSON([]byte(body))
		if err != nil || !asJSON || a.Kind != kind || string(a.Text) != text {
			t.Errorf("%q: %d %q, %t, %v, want %d %q", body, a.Kind, a.Text, asJSON, err, kind, text)
		}
	}
	f(`{"version":"7.0.3","variant":2,"data":[{"value":"1\n2"}]}`, PassiveValue, "1\n2")
	f(`{"data":[{"value":3.5}],"version":"7.0.3"}`, PassiveValue, "3.5")
	f(`{"version":"7.0.3","variant":1,"data":[{"value":null}]}`, PassiveNone, "")
	f(`{"version":"7.0.3","variant":1,"data":[{"error":"Unsupported item key."}]}`, PassiveNotSupported, "Unsupported item key.")
	f(`{"version":"7.0.3","error":"Failed to parse."}`, PassiveFailed, "Failed to parse.")
	refuse := func(body string) {
		t.Helper()
		if a, asJSON, err := DecodePassiveJSON([]byte(body)); err == nil || !asJSON {
			t.Errorf("%q: %+v, %t, want an error", body, a, asJSON)
		}
	}
	refuse(`{`)
	refuse(`{"version":"7.0.3"}`)
	refuse(`{"data":[{"value":"1"}]}`)
	refuse(`{"version":"7.0.3","data":[]}`)
	refuse(`{"version":"7.0.3","data":["1"]}`)
	refuse(`{"version":"7.0.3","data":[{"value":"1"`)
	if _, asJSON, err := DecodePassiveJSON([]byte("ZBX_NOTSUPPORTED\x00Invalid item key format.")); asJSON || err != nil {
		t.Errorf("the answer of an old agent: %t, %v", asJSON, err)
	}
}

func FuzzPassive(f *testing.F) {
	f.Add([]byte(`{"version":"7.0.3","variant":2,"data":[{"value":"1\u00e4"}]}`))
	f.Add([]byte("ZBX_NOTSUPPORTED\x00Unsupported item key."))
	f.Fuzz(func(t *testing.T, b []byte) {
		if a := DecodePassiveText(b); len(a.Text) > len(b)+len("the agent does not support the key") {
			t.Errorf("%d bytes out of %d", len(a.Text), len(b))
		}
		n := len(b)
		a, _, err := DecodePassiveJSON(bytes.Clone(b))
		if err == nil && len(a.Text) > n {
			t.Errorf("%d bytes out of %d", len(a.Text), n)
		}
	})
}
