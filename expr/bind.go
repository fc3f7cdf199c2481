package expr

import (
	"strconv"
	"strings"
	"time"
)

// Func is a call of a function of an item: what is known before any value.
type Func struct {
	Kind Kind
	// Ref is the index of the item in the expression's Refs.
	Ref uint16
	// Window is the period; its zero value means the last value.
	Window Window
	// Params is the text behind the item, with its first comma, for messages.
	Params string
	name   string
	match  *matcher
	// predict holds the parameters of forecast and timeleft.
	predict *prediction
	// anomalies holds the parameters of trendstl.
	anomalies *anomalies
	// season is the season of a baseline: h, d, w, M or y.
	season byte
	// number is the number of seasons of a baseline, the percentage of percentile, the strictness of monoinc, monodec and nodata, the mode of changecount.
	number float64
}

// parameter is one parameter of a history function and where it stands.
type parameter struct {
	text   string
	quoted bool
	at     int
}

// bind gives a function its parameters. Parameters that hold macros make the program broken, not the syntax wrong.
func (p *parser) bind(f *Func, params []parameter) error {
	f.name = names[f.Kind]
	for _, param := range params {
		if !param.quoted && strings.HasPrefix(param.text, "{") {
			p.program.breakBecause("the macro " + param.text + " has no value")
			return nil
		}
	}
	if len(params) > 0 && params[0].text != "" {
		w, problem := parseWindow(params[0].text, f.Kind.isTrend())
		if problem != "" {
			return p.fail(params[0].at, "%s, found %q", problem, params[0].text)
		}
		f.Window = w
	}
	if f.Kind.isTrend() {
		return p.bindTrend(f, params)
	}
	if err := p.needWindow(f, params); err != nil {
		return err
	}
	return p.bindRest(f, params)
}

// bindTrend checks the period of a function of trends, and the seasons of a baseline.
func (p *parser) bindTrend(f *Func, params []parameter) error {
	w := &f.Window
	if w.Span < time.Hour || w.Span%time.Hour != 0 || !w.Shifted() || !w.hourly() {
		return p.fail(params[0].at, "expected whole hours or more that end at the start of an hour, such as 1h:now/h, found %q", params[0].text)
	}
	if f.Kind == kindTrendStl {
		return p.bindSTL(f, params)
	}
	if f.Kind != kindBaselineDev && f.Kind != kindBaselineWma {
		return nil
	}
	season := params[1]
	if len(season.text) != 1 || strings.IndexByte("hdwMy", season.text[0]) < 0 {
		return p.fail(season.at, "expected one of the seasons h d w M y as third argument of %s, found %q", f.name, season.text)
	}
	if unitLength(season.text[0]) < w.Span {
		return p.fail(season.at, "expected a season that is not shorter than the period, found %q", season.text)
	}
	f.season = season.text[0]
	n, err := strconv.Atoi(params[2].text)
	if err != nil || n < 1 || n > maxSeasons {
		return p.fail(params[2].at, "expected 1 to %d seasons, found %q", maxSeasons, params[2].text)
	}
	f.number = float64(n)
	return nil
}

// needWindow checks that functions over a period have one, and that the others have the form they can use.
func (p *parser) needWindow(f *Func, params []parameter) error {
	w := &f.Window
	switch f.Kind {
	case kindLast, kindLogEventID, kindLogSeverity, kindLogSource:
		if w.Span != 0 {
			return p.fail(params[0].at, "expected #N as second argument of %s, found %q", f.name, params[0].text)
		}
		w.Count = max(1, w.Count)
	case kindFind:
		if w.Span == 0 {
			w.Count = max(1, w.Count)
		}
	case kindChange:
		w.Count = 2
	case kindExistsForeach:
	case kindLastForeach:
		if w.Count == 0 && w.Span == 0 {
			w.Count = 1
		}
	case kindNodata, kindFuzzytime:
		if w.Span == 0 || w.Shifted() {
			return p.fail(params[0].at, "expected a number of seconds as second argument of %s, found %q", f.name, params[0].text)
		}
	default:
		if w.Span == 0 && w.Count == 0 {
			return p.fail(params[0].at, "expected a period as second argument of %s", f.name)
		}
	}
	return nil
}

// bindRest reads what comes behind the period.
func (p *parser) bindRest(f *Func, params []parameter) error {
	rest := func(i int) parameter {
		if i < len(params) {
			return params[i]
		}
		return parameter{at: p.at}
	}
	switch f.Kind {
	case kindForecast, kindTimeleft:
		return p.bindPrediction(f, params)
	case kindCount, kindFind, kindCountUnique, kindCountForeach:
		return p.bindMatch(f, rest(1), rest(2))
	case kindLogEventID, kindLogSource:
		if rest(1).text == "" {
			return nil
		}
		return p.bindMatch(f, parameter{text: "regexp", at: rest(1).at}, rest(1))
	case kindBucketRateForeach:
		if rest(1).text == "" {
			f.number = 1
			return nil
		}
		n, err := strconv.Atoi(rest(1).text)
		if err != nil || n < 1 || n > MaxArguments {
			return p.fail(rest(1).at, "expected the number of a parameter of the item key, found %q", rest(1).text)
		}
		f.number = float64(n)
	case kindPercentile, kindBucketPercentile:
		v, err := strconv.ParseFloat(rest(1).text, 64)
		if err != nil || !(v >= 0 && v <= 100) {
			return p.fail(rest(1).at, "expected a percentage from 0 to 100, found %q", rest(1).text)
		}
		f.number = v
	case kindChangeCount:
		return p.bindWord(f, rest(1), "all", "inc", "dec")
	case kindMonoInc, kindMonoDec:
		return p.bindWord(f, rest(1), "weak", "strict")
	case kindNodata:
		return p.bindWord(f, rest(1), "", "strict")
	}
	return nil
}

// bindWord sets number to the index of one of the allowed words; nothing is the first.
func (p *parser) bindWord(f *Func, param parameter, words ...string) error {
	if param.text == "" {
		return nil
	}
	for i, word := range words {
		if param.text == word {
			f.number = float64(i)
			return nil
		}
	}
	return p.fail(param.at, "expected one of %q as third argument of %s, found %q", words, f.name, param.text)
}

func (p *parser) bindMatch(f *Func, operator, pattern parameter) error {
	if operator.text == "" && pattern.text == "" && !pattern.quoted && f.Kind != kindFind {
		return nil
	}
	if _, ok := comparisons[operator.text]; !ok {
		return p.fail(operator.at, "expected one of the operators eq ne gt ge lt le like regexp iregexp bitand, found %q", operator.text)
	}
	m, problem := newMatcher(operator.text, pattern.text)
	if problem == problemGlobalRegexp {
		p.program.breakBecause(problem)
		return nil
	}
	if problem != "" {
		return p.fail(pattern.at, "%s", problem)
	}
	f.match = m
	return nil
}

// Timer reports whether the function's value may change without a new value of its item.
func (f *Func) Timer() bool {
	return f.Kind == kindNodata || f.Kind.isTrend()
}

// Many reports whether the function reads many items: those that Item.Many holds.
func (f *Func) Many() bool { return f.Kind.isForeach() }

// NewestOnly reports whether the function asks for nothing but the newest value at the moment of evaluation.
func (f *Func) NewestOnly() bool {
	return (f.Kind == kindLast || f.Kind == kindFind || f.Kind == kindFuzzytime) && (f.Window.Count == 1 || f.Kind == kindFuzzytime) && !f.Window.Shifted()
}

// Need returns how many values, or how far back, the function reads its item; a value cache keeps that much.
func (f *Func) Need() (span time.Duration, count int) {
	if f.Kind.isTrend() {
		return 0, 1
	}
	switch f.Kind {
	case kindNodata, kindFuzzytime, kindExistsForeach:
		return 0, 1
	}
	if f.Window.Span != 0 {
		return f.Window.Reach() + time.Second, 1
	}
	if f.Window.Shifted() {
		return f.Window.Reach() + time.Second, f.Window.Count + 1
	}
	return 0, f.Window.Count
}
