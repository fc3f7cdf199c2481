package expr

import "fmt"

// Kind is a function.
type Kind uint8

// The functions that evaluation outside of this package needs to tell apart; the others are known by name only.
const (
	noKind Kind = iota
	kindLast
	kindFirst
	kindAvg
	kindMin
	kindMax
	kindSum
	kindCount
	kindCountUnique
	kindFind
	kindChange
	kindChangeCount
	kindNodata
	kindFuzzytime
	kindPercentile
	kindStddevPop
	kindStddevSamp
	kindVarPop
	kindVarSamp
	kindSumOfSquares
	kindMad
	kindKurtosis
	kindSkewness
	kindMonoInc
	kindMonoDec
	kindRate
	kindForecast
	kindTimeleft
	kindLogEventID
	kindLogSeverity
	kindLogSource
	// Functions of hourly trends.
	kindTrendAvg
	kindTrendCount
	kindTrendMax
	kindTrendMin
	kindTrendSum
	kindTrendStl
	kindBaselineDev
	kindBaselineWma
	// Functions of many items at once, whose result is a list.
	kindAvgForeach
	kindBucketRateForeach
	kindCountForeach
	kindExistsForeach
	kindLastForeach
	kindMaxForeach
	kindMinForeach
	kindSumForeach
	kindBucketPercentile
	// Functions of lists only.
	kindItemCount
	kindHistogramQuantile
	kindDate
	kindDayOfMonth
	kindDayOfWeek
	kindNow
	kindTime
	kindAbs
	kindAcos
	kindAsin
	kindAtan
	kindAtan2
	kindCbrt
	kindCeil
	kindCos
	kindCosh
	kindCot
	kindDegrees
	kindE
	kindExp
	kindExpm1
	kindFloor
	kindLog
	kindLog10
	kindMod
	kindPi
	kindPower
	kindRadians
	kindRand
	kindRound
	kindSignum
	kindSin
	kindSinh
	kindSqrt
	kindTan
	kindTruncate
	kindBitAnd
	kindBitOr
	kindBitXor
	kindBitNot
	kindBitLeft
	kindBitRight
	kindBetween
	kindIn
	kindASCII
	kindBitLength
	kindByteLength
	kindChar
	kindConcat
	kindInsert
	kindLeft
	kindLength
	kindLtrim
	kindMid
	kindRepeat
	kindReplace
	kindRight
	kindRtrim
	kindTrim
)

// arity is how many arguments a function takes; for functions of items the item counts as one.
type arity struct{ minimum, maximum uint8 }

// none is the arity of a form that a function does not have.
var none = arity{255, 0}

// String says what is expected.
func (a arity) String() string {
	switch {
	case a.minimum == a.maximum && a.minimum == 1:
		return "1 argument"
	case a.minimum == a.maximum:
		return fmt.Sprintf("%d arguments", a.minimum)
	case a.maximum >= MaxArguments:
		return fmt.Sprintf("at least %d arguments", a.minimum)
	}
	return fmt.Sprintf("%d to %d arguments", a.minimum, a.maximum)
}

// function is what the parser knows of a name.
type function struct {
	kind Kind
	// history is the form whose first argument is an item, plain the one whose arguments are expressions.
	history, plain arity
}

func history(k Kind, minimum, maximum uint8) function {
	return function{k, arity{minimum, maximum}, none}
}

func plain(k Kind, minimum, maximum uint8) function {
	return function{k, none, arity{minimum, maximum}}
}

// statistics is a function of an item's values, or of a list of values.
func statistics(k Kind) function { return function{k, arity{2, 2}, arity{1, 1}} }

// isTrend reports whether a function reads hourly trends.
func (k Kind) isTrend() bool { return k >= kindTrendAvg && k <= kindBaselineWma }

// isForeach reports whether a function reads many items.
func (k Kind) isForeach() bool { return k >= kindAvgForeach && k <= kindBucketPercentile }

// functions are all functions of Zabbix 6.0. Aggregates exist in both forms.
var functions = map[string]function{
	"last": history(kindLast, 1, 2), "first": history(kindFirst, 2, 2),
	"avg":   {kindAvg, arity{2, 2}, arity{1, MaxArguments}},
	"min":   {kindMin, arity{2, 2}, arity{1, MaxArguments}},
	"max":   {kindMax, arity{2, 2}, arity{1, MaxArguments}},
	"sum":   {kindSum, arity{2, 2}, arity{1, MaxArguments}},
	"count": {kindCount, arity{2, 4}, arity{1, 3}}, "countunique": history(kindCountUnique, 2, 4),
	"find": history(kindFind, 1, 4), "change": history(kindChange, 1, 1), "changecount": history(kindChangeCount, 2, 3),
	"nodata": history(kindNodata, 2, 3), "fuzzytime": history(kindFuzzytime, 2, 2), "percentile": history(kindPercentile, 3, 3),
	"stddevpop": statistics(kindStddevPop), "stddevsamp": statistics(kindStddevSamp), "varpop": statistics(kindVarPop),
	"varsamp": statistics(kindVarSamp), "sumofsquares": statistics(kindSumOfSquares), "mad": statistics(kindMad),
	"kurtosis": statistics(kindKurtosis), "skewness": statistics(kindSkewness),
	"monoinc": history(kindMonoInc, 2, 3), "monodec": history(kindMonoDec, 2, 3), "rate": history(kindRate, 2, 2),
	"forecast": history(kindForecast, 3, 5), "timeleft": history(kindTimeleft, 3, 4),
	"logeventid": history(kindLogEventID, 1, 3), "logseverity": history(kindLogSeverity, 1, 2), "logsource": history(kindLogSource, 1, 3),

	"trendavg": history(kindTrendAvg, 2, 2), "trendcount": history(kindTrendCount, 2, 2), "trendmax": history(kindTrendMax, 2, 2),
	"trendmin": history(kindTrendMin, 2, 2), "trendsum": history(kindTrendSum, 2, 2), "trendstl": history(kindTrendStl, 4, 7),
	"baselinedev": history(kindBaselineDev, 4, 4), "baselinewma": history(kindBaselineWma, 4, 4),

	"avg_foreach": history(kindAvgForeach, 2, 2), "bucket_rate_foreach": history(kindBucketRateForeach, 2, 3),
	"count_foreach": history(kindCountForeach, 2, 4), "exists_foreach": history(kindExistsForeach, 1, 1),
	"last_foreach": history(kindLastForeach, 1, 2), "max_foreach": history(kindMaxForeach, 2, 2),
	"min_foreach": history(kindMinForeach, 2, 2), "sum_foreach": history(kindSumForeach, 2, 2),
	"item_count": plain(kindItemCount, 1, 1), "bucket_percentile": history(kindBucketPercentile, 3, 3),
	"histogram_quantile": plain(kindHistogramQuantile, 2, MaxArguments),

	"date": plain(kindDate, 0, 0), "dayofmonth": plain(kindDayOfMonth, 0, 0), "dayofweek": plain(kindDayOfWeek, 0, 0),
	"now": plain(kindNow, 0, 0), "time": plain(kindTime, 0, 0),

	"abs": plain(kindAbs, 1, 1), "acos": plain(kindAcos, 1, 1), "asin": plain(kindAsin, 1, 1), "atan": plain(kindAtan, 1, 1),
	"atan2": plain(kindAtan2, 2, 2), "cbrt": plain(kindCbrt, 1, 1), "ceil": plain(kindCeil, 1, 1), "cos": plain(kindCos, 1, 1),
	"cosh": plain(kindCosh, 1, 1), "cot": plain(kindCot, 1, 1), "degrees": plain(kindDegrees, 1, 1), "e": plain(kindE, 0, 0),
	"exp": plain(kindExp, 1, 1), "expm1": plain(kindExpm1, 1, 1), "floor": plain(kindFloor, 1, 1), "log": plain(kindLog, 1, 1),
	"log10": plain(kindLog10, 1, 1), "mod": plain(kindMod, 2, 2), "pi": plain(kindPi, 0, 0), "power": plain(kindPower, 2, 2),
	"radians": plain(kindRadians, 1, 1), "rand": plain(kindRand, 0, 0), "round": plain(kindRound, 2, 2), "signum": plain(kindSignum, 1, 1),
	"sin": plain(kindSin, 1, 1), "sinh": plain(kindSinh, 1, 1), "sqrt": plain(kindSqrt, 1, 1), "tan": plain(kindTan, 1, 1),
	"truncate": plain(kindTruncate, 2, 2),

	"bitand": plain(kindBitAnd, 2, 2), "bitor": plain(kindBitOr, 2, 2), "bitxor": plain(kindBitXor, 2, 2), "bitnot": plain(kindBitNot, 1, 1),
	"bitlshift": plain(kindBitLeft, 2, 2), "bitrshift": plain(kindBitRight, 2, 2),
	"between": plain(kindBetween, 3, 3), "in": plain(kindIn, 2, MaxArguments),

	"ascii": plain(kindASCII, 1, 1), "bitlength": plain(kindBitLength, 1, 1), "bytelength": plain(kindByteLength, 1, 1),
	"char": plain(kindChar, 1, 1), "concat": plain(kindConcat, 2, MaxArguments), "insert": plain(kindInsert, 4, 4),
	"left": plain(kindLeft, 2, 2), "length": plain(kindLength, 1, 1), "ltrim": plain(kindLtrim, 1, 2), "mid": plain(kindMid, 3, 3),
	"repeat": plain(kindRepeat, 2, 2), "replace": plain(kindReplace, 3, 3), "right": plain(kindRight, 2, 2),
	"rtrim": plain(kindRtrim, 1, 2), "trim": plain(kindTrim, 1, 2),
}

// names are the names of the kinds that have exactly one, for messages.
var names = func() map[Kind]string {
	m := make(map[Kind]string, len(functions))
	for name, f := range functions {
		m[f.kind] = name
	}
	return m
}()
