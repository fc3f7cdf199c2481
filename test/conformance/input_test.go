package conformance

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// Zabbix's numbers of value types, preprocessing steps and modes.
const (
	float, character, unsigned, text = 0, 1, 3, 4

	multiplier, simpleChange, changePerSecond = 1, 9, 10
	jsonPath, discardUnchanged, regex         = 12, 19, 5

	recoveryExpression, recoveryNone = 1, 2
)

// step is a preprocessing step by its number and by its name in exports.
type step struct {
	kind       int
	name       string
	parameters []string
}

// item is an item that both servers get.
type item struct {
	key       string
	valueType int
	steps     []step
}

// trigger is a trigger that both servers get.
type trigger struct {
	name, expression, recovery string
	mode                       int
	multiple                   bool
	// late says that it is over an item with late values, where the servers differ on purpose.
	late bool
}

// row is one value as a sender gives it.
type row struct {
	key, value string
	at         int64 // nanoseconds
}

var typeNames = map[int]string{float: "FLOAT", character: "CHAR", unsigned: "UNSIGNED", text: "TEXT"}

// items are those of the run: numbers, text, steps that keep state, a pair with common triggers, one with late values.
func items() []item {
	return []item{
		{key: "f1", valueType: float},
		{key: "f2", valueType: float},
		{key: "f3", valueType: float},
		{key: "u1", valueType: unsigned},
		{key: "u2", valueType: unsigned},
		{key: "text", valueType: text},
		{key: "char", valueType: character},
		{key: "pair1", valueType: float},
		{key: "pair2", valueType: unsigned},
		{key: "speed", valueType: float, steps: []step{{changePerSecond, "CHANGE_PER_SECOND", []string{""}}}},
		{key: "growth", valueType: unsigned, steps: []step{{simpleChange, "SIMPLE_CHANGE", []string{""}}, {multiplier, "MULTIPLIER", []string{"8"}}}},
		{key: "changed", valueType: unsigned, steps: []step{{discardUnchanged, "DISCARD_UNCHANGED", []string{""}}}},
		{key: "json", valueType: float, steps: []step{{jsonPath, "JSONPATH", []string{"$.load[?(@.name == 'one')].value.first()"}}}},
		{key: "word", valueType: character, steps: []step{{regex, "REGEX", []string{`state=(\w+)`, `\1`}}}},
		{key: "late", valueType: float},
		{key: "lateuint", valueType: unsigned},
	}
}

// triggers are those of the run. In an expression %s stands for the item.
func triggers() []trigger {
	var all []trigger
	add := func(key string, expressions ...string) {
		for _, e := range expressions {
			name := fmt.Sprintf("%s %02d", key, len(all))
			all = append(all, trigger{name: name, expression: strings.ReplaceAll(e, "%s", "/conf/"+key), late: strings.HasPrefix(key, "late")})
		}
	}
	numeric := []string{
		"last(%s)>60", "last(%s,#2)>last(%s)", "avg(%s,5m)>55", "avg(%s,#5)<45", "min(%s,10m)>30", "max(%s,#3)>75", "max(%s,2m)<50",
		"sum(%s,#4)>220", "sum(%s,3m)>300", "count(%s,10m,\"gt\",60)>4", "count(%s,#10,\"le\",40)>=5", "count(%s,5m)<6",
		"change(%s)>12", "abs(change(%s))>15", "percentile(%s,10m,90)>80", "stddevpop(%s,5m)>14", "stddevsamp(%s,#6)>15",
		"varpop(%s,5m)>180", "mad(%s,10m)>9", "kurtosis(%s,15m)>2.2", "skewness(%s,15m)>0.4", "sumofsquares(%s,5m)>40000",
		"changecount(%s,5m,\"inc\")>6", "monoinc(%s,#3)=1", "monodec(%s,#3,\"strict\")=1", "first(%s,10m)<last(%s)",
		"avg(%s,5m:now-10m)>55", "last(%s,#1:now-5m)>60", "max(%s,10m)-min(%s,10m)>50", "countunique(%s,5m)>9",
		"last(%s)>40 and avg(%s,10m)>50 or last(%s)<10", "not (last(%s)>30)", "rate(%s,10m)>0.2", "avg(%s,1h:now/h)>49",
		"forecast(%s,15m,5m)>70", "timeleft(%s,15m,90)<600", "last(%s)/last(%s,#2)>1.5", "between(last(%s),40,60)=1", "in(floor(last(%s)/10),2,4,6)=1",
		"last(%s,#400)>50", "find(%s,,\"gt\",60)=1", "round(avg(%s,5m),0)=50", "mod(floor(last(%s)),7)=3",
	}
	for _, key := range []string{"f1", "f2", "u1"} {
		add(key, numeric...)
	}
	add("u2", "last(%s)>=18446744073709551600", "change(%s)<>0", "bitand(last(%s),3)=1", "last(%s)=last(%s,#2)")
	add("text", "find(%s,10m,\"like\",\"error\")=1", "find(%s,,\"regexp\",\"err.*[0-9]$\")=1", "count(%s,#10,\"iregexp\",\"ERROR\")>=3", "length(last(%s))>30",
		"last(%s)=last(%s,#2)", "change(%s)=1", "countunique(%s,10m)>3", "left(last(%s),5)=\"error\"", "count(%s,5m,\"like\",\"warn\")>2")
	add("char", "last(%s)=\"down\"", "find(%s,#3,\"eq\",\"down\")=1", "count(%s,10m,\"ne\",\"up\")>5", "changecount(%s,15m)>8", "ascii(last(%s))=100")
	add("speed", "last(%s)>5", "avg(%s,10m)>4", "min(%s,#4)>2")
	add("growth", "last(%s)>800", "max(%s,10m)>1500", "count(%s,10m)<8")
	add("changed", "last(%s)>2", "count(%s,10m)>10", "change(%s)>1")
	add("json", "last(%s)>60", "avg(%s,5m)>50")
	add("word", "last(%s)=\"failed\"", "count(%s,10m,\"eq\",\"failed\")>3")
	add("late", "last(%s)>60", "avg(%s,5m)>55", "max(%s,#3)>75")
	add("lateuint", "last(%s)>60", "sum(%s,10m)>900")
	return append(
		all,
		trigger{name: "recovery", expression: "last(/conf/f1)>70", recovery: "last(/conf/f1)<40", mode: recoveryExpression},
		trigger{name: "recovery window", expression: "avg(/conf/f2,3m)>60", recovery: "max(/conf/f2,3m)<60", mode: recoveryExpression},
		trigger{name: "never recovers", expression: "last(/conf/u1)>90", mode: recoveryNone},
		trigger{name: "multiple", expression: "last(/conf/f1)>65", multiple: true},
		trigger{name: "multiple recovery", expression: "last(/conf/u1)>70", recovery: "last(/conf/u1)<50", mode: recoveryExpression, multiple: true},
		trigger{name: "pair and", expression: "last(/conf/pair1)>50 and last(/conf/pair2)>50"},
		trigger{name: "pair or", expression: "last(/conf/pair1)>80 or avg(/conf/pair2,5m)>60"},
		trigger{name: "pair sum", expression: "last(/conf/pair1)+last(/conf/pair2)>110"},
		trigger{name: "pair recovery", expression: "last(/conf/pair1)>70", recovery: "last(/conf/pair2)<40", mode: recoveryExpression},
		trigger{name: "unknown absorbed", expression: "last(/conf/pair1)>60 or last(/conf/nothing)>1"},
		trigger{name: "unknown", expression: "last(/conf/pair1)>60 and last(/conf/nothing)>1"},
	)
}

// source makes the values of the run.
type source struct {
	r       *rand.Rand
	walks   map[string]float64
	counter map[string]uint64
}

// walk is a bounded random walk, so that thresholds are crossed again and again.
func (s *source) walk(key string) float64 {
	v, ok := s.walks[key]
	if !ok {
		v = 50
	}
	v += s.r.NormFloat64() * 12
	if v < 0 || v > 100 {
		v = 20 + s.r.Float64()*60
	}
	s.walks[key] = v
	return v
}

// value is the next value of an item as text.
func (s *source) value(key string) string {
	switch key {
	case "u1", "pair2", "lateuint":
		return strconv.Itoa(int(s.walk(key)))
	case "u2":
		return strconv.FormatUint(^uint64(0)-uint64(s.r.IntN(4))*7, 10)
	case "text":
		return []string{"ok", "warning 7", "error 12 on disk", "error without number ", "Error: a long line of text with é and ü in it"}[s.r.IntN(5)]
	case "char":
		return []string{"up", "down", "degraded"}[s.r.IntN(3)]
	case "speed", "growth":
		s.counter[key] += uint64(s.r.IntN(200))
		if s.r.IntN(40) == 0 {
			s.counter[key] = 0 // the counter starts again
		}
		return strconv.FormatUint(s.counter[key], 10)
	case "changed":
		return strconv.Itoa(s.r.IntN(4))
	case "json":
		if s.r.IntN(20) == 0 {
			return `{"load":[]}` // the step fails and the item is not supported
		}
		return fmt.Sprintf(`{"load":[{"name":"two","value":1},{"name":"one","value":%.2f}]}`, s.walk(key))
	case "word":
		return "state=" + []string{"running", "failed"}[s.r.IntN(2)] + ";"
	}
	return strconv.FormatFloat(s.walk(key), 'f', 3, 64)
}

// input makes the rows of a run: rounds 5 to 40 seconds apart with longer gaps, one value of most items each.
func input(seed uint64, from, to time.Time) []row {
	s := &source{r: rand.New(rand.NewPCG(seed, 1)), walks: map[string]float64{}, counter: map[string]uint64{}}
	var rows []row
	for at := from; at.Before(to); at = at.Add(time.Duration(5000+s.r.IntN(35_000)) * time.Millisecond) {
		if s.r.IntN(100) == 0 {
			at = at.Add(time.Duration(s.r.IntN(15)) * time.Minute)
		}
		for _, i := range items() {
			itemAt := at.UnixNano()
			switch {
			case i.key == "pair1":
			case i.key == "pair2":
				// Not at the same instant: Zabbix evaluates a trigger over both twice then, ours once.
				itemAt += int64(1+s.r.IntN(3000)) * 1e6
			case s.r.IntN(12) == 0:
				continue
			default:
				itemAt += int64(s.r.IntN(4000)) * 1e6
			}
			if strings.HasPrefix(i.key, "late") && s.r.IntN(6) == 0 {
				itemAt -= int64(1+s.r.IntN(5000)) * 1e9 // up to more than an hour late
				if itemAt < from.UnixNano() {
					itemAt += 2 * (from.UnixNano() - itemAt)
				}
			}
			if itemAt%int64(time.Hour) < int64(time.Second) {
				itemAt += int64(time.Second) // see 0034 of the design about the first second of an hour
			}
			value := s.value(i.key)
			if (i.key == "f2" || i.key == "pair1") && s.r.IntN(25) == 0 {
				value = "ZBX_NOTSUPPORTED"
			}
			rows = append(rows, row{i.key, value, itemAt})
		}
	}
	return rows
}
