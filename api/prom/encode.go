package prom

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
)

// flushBytes is how much of an answer is collected before it is sent.
const flushBytes = 64 << 10

// encoder writes results in Prometheus' JSON, piece by piece.
type encoder struct {
	w http.ResponseWriter
	b []byte
	// gone is set when the caller takes no more; what follows is dropped.
	gone bool
}

// writeResult answers with a result. Series come in the order of the engine.
func writeResult(w http.ResponseWriter, value parser.Value, warnings, infos []string) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(http.StatusOK)
	e := &encoder{w: w, b: make([]byte, 0, flushBytes+4096)}
	e.raw(`{"status":"success","data":{"resultType":"`)
	e.raw(string(value.Type()))
	e.raw(`","result":`)
	e.value(value)
	e.raw(`}`)
	e.list("warnings", warnings)
	e.list("infos", infos)
	e.raw(`}`)
	e.flush()
}

func (e *encoder) raw(s string) { e.b = append(e.b, s...) }

func (e *encoder) flush() {
	if !e.gone && len(e.b) > 0 {
		_, err := e.w.Write(e.b)
		e.gone = err != nil
	}
	e.b = e.b[:0]
}

func (e *encoder) flushIfFull() {
	if len(e.b) >= flushBytes {
		e.flush()
	}
}

func (e *encoder) list(name string, texts []string) {
	if len(texts) == 0 {
		return
	}
	e.raw(`,"` + name + `":[`)
	for i, t := range texts {
		if i > 0 {
			e.raw(",")
		}
		e.text(t)
	}
	e.raw("]")
}

func (e *encoder) value(value parser.Value) {
	switch v := value.(type) {
	case promql.Matrix:
		e.matrix(v)
	case promql.Vector:
		e.vector(v)
	case promql.Scalar:
		e.point(v.T, v.V)
	case promql.String:
		e.raw("[")
		e.timestamp(v.T)
		e.raw(",")
		e.text(v.V)
		e.raw("]")
	default:
		e.raw("null")
	}
}

func (e *encoder) matrix(m promql.Matrix) {
	e.raw("[")
	for i := range m {
		if i > 0 {
			e.raw(",")
		}
		e.raw(`{"metric":`)
		e.labels(m[i].Metric)
		for n, p := range m[i].Floats {
			if n == 0 {
				e.raw(`,"values":[`)
			} else {
				e.raw(",")
			}
			e.point(p.T, p.F)
			e.flushIfFull()
		}
		if len(m[i].Floats) > 0 {
			e.raw("]")
		}
		e.raw("}")
	}
	e.raw("]")
}

func (e *encoder) vector(v promql.Vector) {
	e.raw("[")
	for i := range v {
		if i > 0 {
			e.raw(",")
		}
		e.raw(`{"metric":`)
		e.labels(v[i].Metric)
		e.raw(`,"value":`)
		e.point(v[i].T, v[i].F)
		e.raw("}")
		e.flushIfFull()
	}
	e.raw("]")
}

func (e *encoder) labels(ls labels.Labels) {
	e.raw("{")
	first := true
	ls.Range(func(l labels.Label) {
		if !first {
			e.raw(",")
		}
		first = false
		e.text(l.Name)
		e.raw(":")
		e.text(l.Value)
	})
	e.raw("}")
}

func (e *encoder) point(t int64, v float64) {
	e.raw("[")
	e.timestamp(t)
	e.raw(`,"`)
	e.b = appendFloat(e.b, v)
	e.raw(`"]`)
}

// timestamp writes milliseconds as seconds with as many decimals as needed: none or three.
func (e *encoder) timestamp(t int64) {
	if t < 0 {
		e.raw("-")
		t = -t
	}
	e.b = strconv.AppendInt(e.b, t/1000, 10)
	if fraction := t % 1000; fraction != 0 {
		e.b = append(e.b, '.', byte('0'+fraction/100), byte('0'+fraction/10%10), byte('0'+fraction%10))
	}
}

// appendFloat writes a float as Prometheus does: NaN, +Inf and -Inf by name, an exponent outside of 1e-6 to 1e21.
func appendFloat(b []byte, v float64) []byte {
	format := byte('f')
	if a := math.Abs(v); a != 0 && (a < 1e-6 || a >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(b, v, format, -1, 64)
}

// text writes a JSON string. Plain text is copied, everything else goes the long way.
func (e *encoder) text(s string) {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			quoted, err := json.Marshal(s)
			if err != nil {
				panic("prom: a text cannot be encoded: " + err.Error())
			}
			e.b = append(e.b, quoted...)
			return
		}
	}
	e.b = append(e.b, '"')
	e.b = append(e.b, s...)
	e.b = append(e.b, '"')
}
