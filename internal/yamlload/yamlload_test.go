package yamlload

import (
	"fmt"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// bomb is a document of a few hundred bytes that stands for 10 to the power of levels texts.
func bomb(levels int) []byte {
	var b strings.Builder
	b.WriteString("l0: &l0 [x,x,x,x,x,x,x,x,x,x]\n")
	for n := 1; n < levels; n++ {
		last := fmt.Sprintf("*l%d", n-1)
		fmt.Fprintf(&b, "l%d: &l%d [%s]\n", n, n, strings.Join([]string{last, last, last, last, last, last, last, last, last, last}, ","))
	}
	return []byte(b.String())
}

func TestLoad(t *testing.T) {
	var few map[string]any
	if err := Load([]byte("a: &a {x: 1}\nb: *a\nc: [*a, *a]\n"), &few); err != nil || fmt.Sprint(few["c"]) != "[map[x:1] map[x:1]]" {
		t.Errorf("%v, %v", few, err)
	}
	var many map[string]any
	if err := Load(bomb(9), &many); err == nil || !strings.Contains(err.Error(), "aliases stand for more than 10000 values") {
		t.Errorf("a bomb of aliases: %.200v", err)
	}
	var known struct{ A int }
	if err := Load([]byte("b: 1\n"), &known, yaml.WithKnownFields()); err == nil {
		t.Error("options are not kept")
	}
	var deep any
	if err := Load([]byte(strings.Repeat("[", 1000)+strings.Repeat("]", 1000)), &deep); err == nil {
		t.Error("nested 1000 deep")
	}
}
