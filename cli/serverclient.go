package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/pflag"

	"tidemark/client"
)

// serverClient calls the API of a running server.
type serverClient struct {
	address string
}

// addTo adds the flags that say where the server is.
func (c *serverClient) addTo(f *pflag.FlagSet) {
	f.StringVar(&c.address, "http", "", "address of a running server, host:port or https://host:port")
}

// open sends a request and returns the answer, whose body must be closed. Answers other than 200 are errors with the server's words.
func (c *serverClient) open(ctx context.Context, method, path string, body any) (*http.Response, error) {
	r := client.Request{Method: method, Path: path}
	if body != nil {
		var err error
		if r.Body, err = json.Marshal(body); err != nil {
			return nil, err
		}
	}
	api, err := newClient(ctx, c.address, http.DefaultClient) // a backup takes as long as it takes
	if err != nil {
		return nil, err
	}
	answer, err := api.Open(ctx, r)
	if err != nil {
		return nil, toldBy(c.address, err)
	}
	return answer, nil
}

// call sends a request and decodes the answer into out, if that is not nil.
func (c *serverClient) call(ctx context.Context, method, path string, body, out any) error {
	api, err := newClient(ctx, c.address, http.DefaultClient)
	if err != nil {
		return err
	}
	if err := api.Call(ctx, method, path, body, out); err != nil {
		return toldBy(c.address, err)
	}
	return nil
}

// progressLine says on w how far something is, at most once a second, with the time that is left.
type progressLine struct {
	w           io.Writer
	began, said time.Time
	last        string
}

func newProgressLine(w io.Writer) *progressLine {
	return &progressLine{w: w, began: time.Now(), said: time.Now()}
}

// say is called as often as one likes. What stands still is said once.
func (p *progressLine) say(done, total int64, what string) {
	now := time.Now()
	if now.Sub(p.said) < time.Second || total <= 0 {
		return
	}
	p.said = now
	head := fmt.Sprintf("%3d %% %s", 100*done/total, what)
	if head == p.last {
		return
	}
	p.last = head
	left := ""
	// Of the first hundredth nothing can be told: opening files counts for more than what is done.
	if took := now.Sub(p.began); done >= total/100 && done > 0 && done < total {
		left = fmt.Sprintf(", %s left", (time.Duration(float64(took)*float64(total-done)/float64(done)) + time.Second/2).Truncate(time.Second))
	}
	fmt.Fprintf(p.w, "%s%s\n", head, left)
}
