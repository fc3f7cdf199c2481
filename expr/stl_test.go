package expr

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"tidemark/model"
)

// oddHours are hourly trends with a daily season, a trend and noise, but for the hours in odd; those in missing are not there.
type oddHours struct {
	end          int64
	odd, missing map[int]bool // hours before the end
	flat         bool
}

func (o oddHours) Hours(_ context.Context, _ model.ItemID, r model.TimeRange, dst []model.Trend) ([]model.Trend, model.ValueType, error) {
	random := rand.New(rand.NewPCG(1, 2))
	for at := r.From; at < r.To; at += int64(time.Hour) {
		back := int((o.end - at) / int64(time.Hour))
		v := 100 + 30*math.Sin(float64(at/int64(time.Hour))*2*math.Pi/24) - float64(back)/50 + random.Float64()
		if o.flat {
			v = 7
		}
		if o.odd[back] {
			v += 25
		}
		if !o.missing[back] {
			dst = append(dst, model.Trend{At: at, Count: 2, Min: math.Float64bits(v), Max: math.Float64bits(v), Sum: 2 * v})
		}
	}
	return dst, model.Float, nil
}

func TestTrendSTL(t *testing.T) {
	at := time.Date(2026, 3, 10, 15, 40, 20, 0, time.UTC)
	f := func(hours oddHours, text, want string) {
		t.Helper()
		hours.end = at.Truncate(time.Hour).UnixNano()
		m := &Machine{Trends: hours, Zone: time.UTC}
		if got := formula(t, m, text, Item{ID: 1, Type: model.Float}, at); got != want {
			t.Errorf("%s = %s, want %s", text, got, want)
		}
	}
	odd := map[int]bool{1: true, 3: true, 60: true}
	f(oddHours{}, `trendstl(/h/k,336h:now/h,4h,24h,8)`, "0")
	f(oddHours{odd: odd}, `trendstl(/h/k,336h:now/h,4h,24h,8)`, "0.5")
	f(oddHours{odd: odd}, `trendstl(/h/k,336h:now/h,2h,24h,8,"mad")`, "0.5")
	f(oddHours{odd: odd}, `trendstl(/h/k,336h:now/h,1h,1d,4,"stddevpop")`, "1")
	f(oddHours{odd: odd}, `trendstl(/h/k,336h:now/h,1h,1d,4,"stddevsamp",11)`, "1")
	f(oddHours{odd: odd, missing: map[int]bool{2: true, 4: true}}, `trendstl(/h/k,336h:now/h,4h,24h,8)`, "1")
	f(oddHours{flat: true}, `trendstl(/h/k,48h:now/h,4h,24h)`, "0")
	gone := map[int]bool{}
	for i := range 40 {
		gone[i] = true
	}
	f(oddHours{missing: gone}, `trendstl(/h/k,48h:now/h,4h,24h)`, "unknown: trendstl(/h/k,48h:now/h,4h,24h): not enough values in the period")
}

func TestTrendSTL_parameters(t *testing.T) {
	for _, text := range []string{
		`trendstl(/h/k,100h:now/h,0h,24h)`, `trendstl(/h/k,100h:now/h,30m,24h)`, `trendstl(/h/k,100h:now/h,101h,24h)`, `trendstl(/h/k,100h:now/h,1h,51h)`,
		`trendstl(/h/k,100h:now/h,1h,1h)`, `trendstl(/h/k,100h:now/h,1h,24h,0)`, `trendstl(/h/k,100h:now/h,1h,24h,3,"x")`, `trendstl(/h/k,100h:now/h,1h,24h,3,"mad",6)`,
		`trendstl(/h/k,5000h:now/h,1h,24h)`, `trendstl(/h/k,100h,1h,24h)`,
	} {
		if e, err := ParseFormula(text); err == nil {
			t.Errorf("%s is taken: %q", text, e.Program.Broken())
		}
	}
}

func BenchmarkDecompose(b *testing.B) {
	y := make([]float64, 672)
	for i := range y {
		y[i] = math.Sin(float64(i) * 2 * math.Pi / 24)
	}
	for b.Loop() {
		decompose(y, 24, 0)
	}
}
