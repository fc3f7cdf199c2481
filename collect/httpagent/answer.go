package httpagent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"

	"tidemark/model"
)

// head is the status line and the headers of an answer, as text.
func head(r *http.Response) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\r\n", r.Proto, r.Status)
	names := make([]string, 0, len(r.Header))
	for name := range r.Header {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		for _, value := range r.Header[name] {
			fmt.Fprintf(&b, "%s: %s\r\n", name, value)
		}
	}
	return b.String()
}

// checked is the value, if the status is one that the request wants.
func (a *Answer) checked(q *model.HTTPRequest) ([]byte, error) {
	if !Matches(q.StatusCodes, a.Status) {
		return nil, mismatch(q, a.Status)
	}
	return a.value(q), nil
}

func mismatch(q *model.HTTPRequest, status int) error {
	return fmt.Errorf("response code %d did not match any of the required status codes %q", status, q.StatusCodes)
}

// value is what a request makes of an answer.
func (a *Answer) value(q *model.HTTPRequest) []byte {
	withHead, withBody := q.Retrieve != "BODY", q.Retrieve != "HEADERS"
	if !q.OutputJSON {
		var out []byte
		if withHead {
			if a.Head == "" {
				a.Head = head(a.response)
			}
			out = append(append(out, a.Head...), "\r\n"...)
		}
		if withBody {
			out = append(out, a.Body...)
		}
		return out
	}
	var out struct {
		Header map[string]string `json:"header,omitempty"`
		Body   json.RawMessage   `json:"body,omitempty"`
	}
	if withHead {
		out.Header = make(map[string]string, len(a.Header))
		for name, values := range a.Header {
			out.Header[name] = strings.Join(values, ", ")
		}
	}
	if withBody {
		kind, _, _ := mime.ParseMediaType(a.Header.Get("Content-Type"))
		if out.Body = bytes.TrimSpace(a.Body); kind != "application/json" || !json.Valid(out.Body) {
			out.Body, _ = json.Marshal(string(a.Body)) // a text always has JSON
		}
	}
	text, _ := json.Marshal(out) // it holds only texts and valid JSON
	return text
}

// Matches reports whether a status is in a list such as "200,301-303"; an empty list has all.
func Matches(list string, status int) bool {
	if strings.TrimSpace(list) == "" {
		return true
	}
	for part := range strings.SplitSeq(list, ",") {
		low, high, isRange := strings.Cut(strings.TrimSpace(part), "-")
		from, err := strconv.Atoi(strings.TrimSpace(low))
		to := from
		if err == nil && isRange {
			to, err = strconv.Atoi(strings.TrimSpace(high))
		}
		if err == nil && status >= from && status <= to {
			return true
		}
	}
	return false
}

// toUTF8 converts a body from the character set that its type names; what is not known stays as it is.
func toUTF8(body []byte, contentType string) []byte {
	_, params, err := mime.ParseMediaType(contentType)
	name := params["charset"]
	if err != nil || name == "" || strings.EqualFold(name, "utf-8") || utf8.Valid(body) && strings.EqualFold(name, "us-ascii") {
		return body
	}
	r, err := charset.NewReaderLabel(name, bytes.NewReader(body))
	if err != nil {
		return body
	}
	// A character has at most four bytes in UTF-8.
	out, err := io.ReadAll(io.LimitReader(r, int64(4*len(body)+4)))
	if err != nil {
		return body
	}
	return out
}
