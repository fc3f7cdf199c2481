package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// serverClient calls the API of a running server.
type serverClient struct {
	address string
}

// addTo adds the flags that say where the server is.
func (c *serverClient) addTo(f *pflag.FlagSet) {
	f.StringVar(&c.address, "http", "", "address of a running server, host:port or https://host:port")
}

// maxClientAnswer bounds an answer that is read into memory.
const maxClientAnswer = 64 << 20

// open sends a request and returns the answer, whose body must be closed. Answers other than 200 are errors with the server's words.
func (c *serverClient) open(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(text)
	}
	base := c.address
	if !strings.Contains(base, "://") {
		base = "http://" + base
	}
	request, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(base, "/")+path, content)
	if err != nil {
		return nil, usagef("--http %q: %w", c.address, err)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	authorize(request)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("no answer from the server at %s: %w; is it running?", c.address, err)
	}
	if answer.StatusCode == http.StatusOK {
		return answer, nil
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	return nil, fmt.Errorf("the server at %s: %w", c.address, refusal(answer.StatusCode, text, request.Header.Get("Authorization") != ""))
}

// call sends a request and decodes the answer into out, if that is not nil.
func (c *serverClient) call(ctx context.Context, method, path string, body, out any) error {
	answer, err := c.open(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxClientAnswer+1))
	if err != nil {
		return fmt.Errorf("read the answer of the server at %s: %w", c.address, err)
	}
	if len(text) > maxClientAnswer {
		return fmt.Errorf("the answer of the server at %s is larger than %d bytes", c.address, maxClientAnswer)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(text, out); err != nil {
		return fmt.Errorf("read the answer of the server at %s: %w", c.address, err)
	}
	return nil
}

// progressLine says on w how far something is, at most once a second, with the time that is left.
type progressLine struct {
	w           io.Writer
	began, said time.Time
}

func newProgressLine(w io.Writer) *progressLine {
	return &progressLine{w: w, began: time.Now(), said: time.Now()}
}

// say is called as often as one likes.
func (p *progressLine) say(done, total int64, what string) {
	now := time.Now()
	if now.Sub(p.said) < time.Second || total <= 0 {
		return
	}
	p.said = now
	left := ""
	// Of the first hundredth nothing can be told: opening files counts for more than what is done.
	if took := now.Sub(p.began); done >= total/100 && done > 0 && done < total {
		left = fmt.Sprintf(", %s left", (time.Duration(float64(took)*float64(total-done)/float64(done)) + time.Second/2).Truncate(time.Second))
	}
	fmt.Fprintf(p.w, "%3d %% %s%s\n", 100*done/total, what, left)
}
