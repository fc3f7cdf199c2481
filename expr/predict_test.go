package expr

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"tidemark/model"
)

// TestPredict_recoversCurves makes values by a formula (item 1, one a second, 1 to 60 s after zero; now is 100) and expects its future.
func TestPredict_recoversCurves(t *testing.T) {
	formulas := map[string]func(t float64) float64{
		"linear":      func(t float64) float64 { return 10 + 2*t },
		"falling":     func(t float64) float64 { return 1000 - 5*t },
		"square":      func(t float64) float64 { return 3 - 8*t + 0.05*t*t },
		"cubic":       func(t float64) float64 { return 1 + t - 0.02*t*t + 0.0001*t*t*t },
		"exponential": func(t float64) float64 { return 2 * math.Exp(0.03*t) },
		"logarithmic": func(t float64) float64 { return 5 + 3*math.Log(t) },
		"power":       func(t float64) float64 { return 0.5 * math.Pow(t, 1.5) },
		"constant":    func(float64) float64 { return 7 },
	}
	square := formulas["square"]
	for _, c := range []struct {
		formula, text string
		want          float64
	}{
		{"linear", "forecast(/h/f,1000s,50s)", 310},
		{"linear", `forecast(/h/f,1000s,50s,linear,"avg")`, 260},
		{"linear", `forecast(/h/f,1000s,50s,,delta)`, 100},
		{"linear", "forecast(/h/f,1000s,-50s)", 110},
		{"linear", "timeleft(/h/f,1000s,310)", 50},
		{"linear", "timeleft(/h/f,1000s,0)", math.MaxFloat64},
		{"falling", "timeleft(/h/f,1000s,0)", 100},
		{"falling", "timeleft(/h/f,#20,0,polynomial1)", 100},
		{"falling", `forecast(/h/f,1000s,1m,linear,"min")`, 200},
		{"constant", "timeleft(/h/f,1000s,0)", math.MaxFloat64},
		{"constant", "forecast(/h/f,1000s,1h)", 7},
		{"constant", "forecast(/h/f,#1,1h,polynomial3)", 7},
		{"square", "forecast(/h/f,1000s,100s,polynomial2)", square(200)},
		{"square", `forecast(/h/f,1000s,100s,"polynomial2","min")`, min(square(100), square(200))},
		{"square", "timeleft(/h/f,1000s,3,polynomial2)", 60},
		{"square", `forecast(/h/f,1000s,-60s,polynomial2,min)`, square(80)},
		{"cubic", "forecast(/h/f,1000s,20s,polynomial3)", formulas["cubic"](120)},
		{"cubic", "forecast(/h/f,1000s,20s,polynomial5)", formulas["cubic"](120)},
		{"exponential", "forecast(/h/f,1000s,1m,exponential)", 2 * math.Exp(0.03*160)},
		{"exponential", "timeleft(/h/f,1000s,1K,exponential)", math.Log(512)/0.03 - 100},
		{"exponential", "forecast(/h/f,1000s,1m,exponential,avg)", 2 / 0.03 * (math.Exp(4.8) - math.Exp(3)) / 60},
		{"falling", "forecast(/h/none,1000s,1m)", -1},
		{"falling", "timeleft(/h/none,1000s,1)", -1},
	} {
		b := model.NewBatch()
		for i := int64(1); i <= 60; i++ {
			b.AppendFloat(1, (900+i)*second, formulas[c.formula](float64(i)))
		}
		r, failure := evaluateText(t, sliceValues{batch: b}, c.text)
		if failure != "" || math.Abs(r.Value-c.want) > 1e-4*max(1, math.Abs(c.want)) {
			t.Errorf("%s of %s = %v (%s), want %v", c.text, c.formula, r.Value, failure, c.want)
		}
	}
}

// TestPredict_curvesOverLogarithms checks the curves whose parameters depend on where time begins, which is just before the first value.
func TestPredict_curvesOverLogarithms(t *testing.T) {
	at := []int64{0, 10 * second, 20 * second, 30 * second}
	seconds := func(i int) float64 { return float64(at[i])/float64(time.Second) + 1e-9 }
	var logs, powers []float64
	for i := range at {
		logs = append(logs, 5+3*math.Log(seconds(i)))
		powers = append(powers, 2*math.Pow(seconds(i), 0.5))
	}
	f := &Func{Kind: kindForecast, predict: &prediction{kind: logarithmic, degree: 1, mode: "value", horizon: 70}}
	if got, want := predicted(f, at, logs, 30*second), 5+3*math.Log(100); math.Abs(got-want) > 1e-6 {
		t.Errorf("logarithmic %v, want %v", got, want)
	}
	f.predict.kind = power
	if got, want := predicted(f, at, powers, 30*second), 20.0; math.Abs(got-want) > 1e-6 {
		t.Errorf("power %v, want %v", got, want)
	}
	f.Kind, f.predict.threshold = kindTimeleft, 20
	if got := predicted(f, at, powers, 30*second); math.Abs(got-70) > 1e-5 {
		t.Errorf("time left %v, want 70", got)
	}
	f.predict.kind = exponential
	if got := predicted(f, at, []float64{1, 0, 1, 2}, 30*second); got != -1 {
		t.Errorf("exponential of a value that is not positive: %v, want -1", got)
	}
}

func TestRoots_ofProducts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// A polynomial with known roots, at least 0.5 apart.
		c := [maxDegree + 1]float64{1}
		n := rapid.IntRange(1, maxDegree).Draw(t, "degree")
		var want []float64
		x := -10.0
		for i := range n {
			x += float64(rapid.IntRange(1, 6).Draw(t, "step")) / 2
			want = append(want, x)
			for k := i + 1; k > 0; k-- {
				c[k] = c[k-1] - x*c[k]
			}
			c[0] *= -x
		}
		got := roots(&c, n, -100, 100)
		if len(got) != n {
			t.Fatalf("%d roots %v, want %v", len(got), got, want)
		}
		for i := range got {
			if math.Abs(got[i]-want[i]) > 1e-5 {
				t.Fatalf("roots %v, want %v", got, want)
			}
		}
	})
}
