package media

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"tidemark/model"
)

// fakeRunner is a script that returns or fails as it is told.
type fakeRunner struct {
	job   Job
	value string
	log   string
	err   error
}

func (r *fakeRunner) RunWebhook(_ context.Context, j Job) ([]byte, string, error) {
	r.job = j
	return []byte(r.value), r.log, r.err
}

func TestJavaScript(t *testing.T) {
	r := &fakeRunner{value: `{"tags":{"b":"2","a":12345678901234567890,"c":true,"d":{},"":"x"}}`, log: "posted with t0ken\n"}
	s := &JavaScript{Source: "return 1", Parameters: map[string]string{"To": "{ALERT.SENDTO}", "Quote": `"<`}, Timeout: time.Second, Tags: true, Secrets: []string{"t0ken", ""}, Runner: r}
	m := Message{Expand: func(text string) string { return strings.ReplaceAll(text, "{ALERT.SENDTO}", "#ops") }}
	answer, tags, err := s.SendTagged(t.Context(), m)
	if err != nil || string(r.job.Value) != `{"Quote":"\"<","To":"#ops"}` || r.job.Timeout != time.Second || answer != r.value {
		t.Errorf("%q %v %+v", answer, err, r.job)
	}
	want := []model.Tag{{Name: "a", Value: "12345678901234567890"}, {Name: "b", Value: "2"}, {Name: "c", Value: "true"}}
	if len(tags) != 3 || tags[0] != want[0] || tags[1] != want[1] || tags[2] != want[2] {
		t.Errorf("tags %v, want %v", tags, want)
	}
	if answer, err := s.Send(t.Context(), m); err != nil || !strings.HasSuffix(answer, "Log of the script:\nposted with ********") {
		t.Errorf("a test: %q %v", answer, err)
	}
	r.err = errors.New(`Post "https://x/bott0ken/send": refused`)
	if _, err := s.Send(t.Context(), m); err == nil || err.Error() != `Post "https://x/bot********/send": refused` || Permanent(err) {
		t.Errorf("a failure: %v", err)
	}
	s.Tags, r.err = false, nil
	if _, tags, err := s.SendTagged(t.Context(), m); err != nil || tags != nil {
		t.Errorf("without tags: %v %v", tags, err)
	}
	s.Runner = nil
	if _, err := s.Send(t.Context(), m); !Permanent(err) {
		t.Errorf("without a runner: %v", err)
	}
	for _, bad := range []JavaScript{{}, {Source: strings.Repeat("x", maxSourceBytes+1)}} {
		if bad.Check() == nil {
			t.Errorf("%.40q was taken", bad.Source)
		}
	}
}

func FuzzTagsOf(f *testing.F) {
	f.Add([]byte(`{"tags":{"a":"b","n":1e400,"l":[1]}}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, in []byte) {
		tags := tagsOf(in)
		if len(tags) > maxTags {
			t.Fatalf("%d tags", len(tags))
		}
		for _, tag := range tags {
			if tag.Name == "" || len(tag.Name) > maxTagBytes || len(tag.Value) > maxTagBytes {
				t.Fatalf("tag %q", tag)
			}
		}
	})
}
