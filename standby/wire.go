package standby

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"tidemark/catalog"
	"tidemark/confdb"
	"tidemark/model"
)

const (
	// maxHeaderBytes bounds the JSON before the bytes of an answer.
	maxHeaderBytes = 64 << 10
	// maxLogBytes is about how much of the log is in an answer; one record may be larger.
	maxLogBytes     = 4 << 20
	maxCatalogBytes = 1 << 20
	// maxPartBytes bounds each part of an answer that is taken.
	maxPartBytes = 8 << 20
)

// ErrAnswer is wrapped by errors of answers that are none.
var ErrAnswer = errors.New("the answer is not one of a primary")

// LogRequest asks for what comes behind a position; it acknowledges everything before it.
type LogRequest struct {
	// Cluster is empty for a standby that has no data yet.
	Cluster string `json:"cluster"`
	Epoch   uint64 `json:"epoch"`
	// Standby names the one that asks, Address is where it can be reached.
	Standby string `json:"standby"`
	Address string `json:"address"`
	// Seeding only asks that the log be kept from now on.
	Seeding  bool             `json:"seeding,omitempty"`
	Position model.LSN        `json:"position"`
	Catalog  catalog.Position `json:"catalog"`
	// WaitMs is how long the primary may wait for something new.
	WaitMs int `json:"wait_ms"`
}

// LogHeader begins the answer; the bytes of the log and of the catalog follow.
type LogHeader struct {
	Cluster string    `json:"cluster"`
	Epoch   uint64    `json:"epoch"`
	From    model.LSN `json:"from"`
	// Durable is how far the primary's log is on its disk, Now its clock in Unix nanoseconds.
	Durable      model.LSN        `json:"durable"`
	Now          int64            `json:"now"`
	LogBytes     int              `json:"log_bytes"`
	Catalog      catalog.Position `json:"catalog"`
	CatalogEnd   int64            `json:"catalog_end"`
	CatalogBytes int              `json:"catalog_bytes"`
	// Peers are the addresses of the primary's other standbys.
	Peers []string `json:"peers,omitempty"`
}

// LogAnswer is a whole answer.
type LogAnswer struct {
	LogHeader
	Log, CatalogRecords []byte
}

// writeHeader writes a length and a JSON object.
func writeHeader(w io.Writer, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(text)))
	_, err = w.Write(append(b, text...))
	return err
}

func readHeader(r io.Reader, v any) error {
	var n [4]byte
	if _, err := io.ReadFull(r, n[:]); err != nil {
		return fmt.Errorf("%w: %w", ErrAnswer, err)
	}
	size := binary.LittleEndian.Uint32(n[:])
	if size > maxHeaderBytes {
		return fmt.Errorf("%w: its header has %d bytes, expected at most %d", ErrAnswer, size, maxHeaderBytes)
	}
	text := make([]byte, size)
	if _, err := io.ReadFull(r, text); err != nil {
		return fmt.Errorf("%w: %w", ErrAnswer, err)
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("%w: %w", ErrAnswer, err)
	}
	return nil
}

// write sends an answer.
func (a *LogAnswer) write(w io.Writer) error {
	a.LogBytes, a.CatalogBytes = len(a.Log), len(a.CatalogRecords)
	err := writeHeader(w, &a.LogHeader)
	for _, part := range [][]byte{a.Log, a.CatalogRecords} {
		if err == nil {
			_, err = w.Write(part)
		}
	}
	return err
}

// readLogAnswer reads an answer.
func readLogAnswer(r io.Reader) (*LogAnswer, error) {
	a := &LogAnswer{}
	if err := readHeader(r, &a.LogHeader); err != nil {
		return nil, err
	}
	for _, part := range []struct {
		size int
		to   *[]byte
	}{{a.LogBytes, &a.Log}, {a.CatalogBytes, &a.CatalogRecords}} {
		if part.size < 0 || part.size > maxPartBytes {
			return nil, fmt.Errorf("%w: a part of %d bytes, expected at most %d", ErrAnswer, part.size, maxPartBytes)
		}
		*part.to = make([]byte, part.size)
		if _, err := io.ReadFull(r, *part.to); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrAnswer, err)
		}
	}
	return a, nil
}

// ConfigurationHeader begins the answer with changed pages of the configuration database.
type ConfigurationHeader struct {
	Cluster string `json:"cluster"`
	Epoch   uint64 `json:"epoch"`
	// Instance and Version name the contents; a version says nothing to another instance.
	Instance string         `json:"instance"`
	Version  uint64         `json:"version"`
	Sum      confdb.PageSum `json:"sum"`
	// Pages follow.
	Pages int `json:"pages"`
	// Secret is the key of secrets in the database.
	Secret string `json:"secret"`
}

// writeConfiguration sends changed pages.
func writeConfiguration(w io.Writer, h *ConfigurationHeader, pages *bytes.Buffer) error {
	h.Pages = pages.Len() / (4 + confdb.PageBytes)
	if err := writeHeader(w, h); err != nil {
		return err
	}
	_, err := pages.WriteTo(w)
	return err
}
