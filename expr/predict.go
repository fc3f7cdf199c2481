package expr

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxDegree is the highest polynomial that forecast and timeleft fit.
const maxDegree = 6

// curveKind is what a prediction fits to the values.
type curveKind uint8

const (
	polynomial  curveKind = iota // linear is one of degree 1
	exponential                  // a·exp(b·t)
	logarithmic                  // a + b·log(t)
	power                        // a·t^b
)

var curves = map[string]curveKind{"": polynomial, "linear": polynomial, "exponential": exponential, "logarithmic": logarithmic, "power": power}

// predictionModes are what forecast gives of the curve from now to its horizon.
var predictionModes = []string{"value", "max", "min", "delta", "avg"}

// prediction are the parameters of forecast and timeleft.
type prediction struct {
	kind   curveKind
	degree int
	mode   string
	// horizon is in seconds, of forecast; threshold is that of timeleft.
	horizon, threshold float64
}

// bindPrediction reads time or threshold, fit and mode.
func (p *parser) bindPrediction(f *Func, params []parameter) error {
	pr := &prediction{degree: 1, mode: "value"}
	goal := params[1]
	if f.Kind == kindForecast {
		text, negative := strings.CutPrefix(goal.text, "-")
		span, ok := ParseDuration(text, false)
		if !ok {
			return p.fail(goal.at, "expected a time such as 1h as third argument of forecast, found %q", goal.text)
		}
		if pr.horizon = span.Seconds(); negative {
			pr.horizon = -pr.horizon
		}
	} else {
		var ok bool
		if pr.threshold, ok = parseNumber(goal.text); !ok {
			return p.fail(goal.at, "expected a number as third argument of timeleft, found %q", goal.text)
		}
	}
	if len(params) > 2 {
		fit := params[2]
		if degree, ok := strings.CutPrefix(fit.text, "polynomial"); ok {
			n, err := strconv.Atoi(degree)
			if err != nil || n < 1 || n > maxDegree {
				return p.fail(fit.at, "expected polynomial1 to polynomial%d, found %q", maxDegree, fit.text)
			}
			pr.degree = n
		} else if pr.kind, ok = curves[fit.text]; !ok {
			return p.fail(fit.at, "expected linear, polynomialN, exponential, logarithmic or power, found %q", fit.text)
		}
	}
	if len(params) > 3 && params[3].text != "" {
		if pr.mode = params[3].text; !slices.Contains(predictionModes, pr.mode) {
			return p.fail(params[3].at, "expected one of %q, found %q", predictionModes, pr.mode)
		}
	}
	f.predict = pr
	return nil
}

// curve is a function of time in seconds after the first value. For polynomials c are the coefficients over t/scale, else
// c[0] and c[1] are a and b.
type curve struct {
	kind   curveKind
	degree int
	scale  float64
	c      [maxDegree + 1]float64
}

// predicted evaluates forecast or timeleft. As in Zabbix it is −1 when there is no result: no values, or a curve that does not
// exist for them. Zabbix counts from the whole second of the evaluation.
func predicted(f *Func, at []int64, vs []float64, now int64) float64 {
	if len(vs) == 0 {
		return -1
	}
	pr, now := f.predict, floorSecond(now)
	seconds := func(t int64) float64 { return float64(t-at[0])/float64(time.Second) + 1e-9 }
	c, ok := fit(pr, at, vs, seconds)
	if !ok {
		return -1
	}
	var result float64
	if f.Kind == kindForecast {
		result = c.forecast(seconds(now), pr.horizon, pr.mode)
	} else {
		result = c.timeleft(seconds(now), pr.threshold)
	}
	if math.IsNaN(result) {
		return -1
	}
	return max(-math.MaxFloat64, min(math.MaxFloat64, result))
}

// fit finds the curve with the least squares; for the curves that are no polynomials after taking logarithms.
func fit(pr *prediction, at []int64, vs []float64, seconds func(int64) float64) (curve, bool) {
	c := curve{kind: pr.kind, degree: min(pr.degree, len(vs)-1), scale: 1}
	if c.kind != polynomial {
		c.degree = min(1, len(vs)-1)
	} else if last := seconds(at[len(at)-1]); last > 1e-6 {
		c.scale = last
	}
	var sums [2*maxDegree + 1]float64
	var right [maxDegree + 1]float64
	for i, v := range vs {
		x := seconds(at[i]) / c.scale
		if c.kind == logarithmic || c.kind == power {
			x = math.Log(x)
		}
		if c.kind == exponential || c.kind == power {
			v = math.Log(v)
		}
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return c, false
		}
		for k, p := 0, 1.0; k <= 2*c.degree; k, p = k+1, p*x {
			sums[k] += p
			if k <= c.degree {
				right[k] += p * v
			}
		}
	}
	if !solve(&sums, &right, c.degree, &c.c) {
		return c, false
	}
	if c.kind == exponential || c.kind == power {
		c.c[0] = math.Exp(c.c[0])
	}
	return c, true
}

// solve solves the normal equations by elimination; row i, column j of the matrix is sums[i+j].
func solve(sums *[2*maxDegree + 1]float64, right *[maxDegree + 1]float64, degree int, result *[maxDegree + 1]float64) bool {
	var m [maxDegree + 1][maxDegree + 2]float64
	n := degree + 1
	for i := range n {
		copy(m[i][:n], sums[i:i+n])
		m[i][n] = right[i]
	}
	for i := range n {
		best := i
		for r := i + 1; r < n; r++ {
			if math.Abs(m[r][i]) > math.Abs(m[best][i]) {
				best = r
			}
		}
		m[i], m[best] = m[best], m[i]
		if m[i][i] == 0 {
			return false
		}
		for r := i + 1; r < n; r++ {
			factor := m[r][i] / m[i][i]
			for k := i; k <= n; k++ {
				m[r][k] -= factor * m[i][k]
			}
		}
	}
	for i := degree; i >= 0; i-- {
		v := m[i][n]
		for k := i + 1; k < n; k++ {
			v -= m[i][k] * result[k]
		}
		result[i] = v / m[i][i]
	}
	return true
}

// horner evaluates a polynomial of a degree.
func horner(c *[maxDegree + 1]float64, degree int, x float64) float64 {
	v := c[degree]
	for i := degree - 1; i >= 0; i-- {
		v = v*x + c[i]
	}
	return v
}

// at returns the curve's value.
func (c *curve) at(t float64) float64 {
	switch c.kind {
	case exponential:
		return c.c[0] * math.Exp(c.c[1]*t)
	case logarithmic:
		return c.c[0] + c.c[1]*math.Log(t)
	case power:
		return c.c[0] * math.Pow(t, c.c[1])
	}
	return horner(&c.c, c.degree, t/c.scale)
}

// forecast returns what the mode says of the curve between now and now + horizon.
func (c *curve) forecast(now, horizon float64, mode string) float64 {
	end := now + horizon
	if mode == "value" || horizon == 0 && mode == "avg" {
		return c.at(end)
	}
	if mode == "avg" {
		return (c.integral(end) - c.integral(now)) / horizon
	}
	least, greatest := min(c.at(now), c.at(end)), max(c.at(now), c.at(end))
	if c.kind == polynomial {
		slope := c.derivative()
		for _, x := range roots(&slope, c.degree-1, min(now, end)/c.scale, max(now, end)/c.scale) {
			v := horner(&c.c, c.degree, x)
			least, greatest = min(least, v), max(greatest, v)
		}
	}
	switch mode {
	case "max":
		return greatest
	case "min":
		return least
	}
	return greatest - least
}

// integral returns an antiderivative of the curve.
func (c *curve) integral(t float64) float64 {
	a, b := c.c[0], c.c[1]
	switch c.kind {
	case exponential:
		if b == 0 {
			return a * t
		}
		return a / b * math.Exp(b*t)
	case logarithmic:
		return a*t + b*(t*math.Log(t)-t)
	case power:
		if b == -1 {
			return a * math.Log(t)
		}
		return a / (b + 1) * math.Pow(t, b+1)
	}
	x, v := t/c.scale, 0.0
	for i := c.degree; i >= 0; i-- {
		v = v*x + c.c[i]/float64(i+1)
	}
	return v * x * c.scale
}

// derivative returns the coefficients of a polynomial's derivative.
func (c *curve) derivative() [maxDegree + 1]float64 {
	var d [maxDegree + 1]float64
	for i := 1; i <= c.degree; i++ {
		d[i-1] = float64(i) * c.c[i]
	}
	return d
}

// timeleft returns the seconds until the curve next has a value; the greatest float when it never has.
func (c *curve) timeleft(now, threshold float64) float64 {
	t := math.Inf(1)
	a, b := c.c[0], c.c[1]
	switch c.kind {
	case exponential:
		t = math.Log(threshold/a) / b
	case logarithmic:
		t = math.Exp((threshold - a) / b)
	case power:
		t = math.Pow(threshold/a, 1/b)
	default:
		p := c.c
		p[0] -= threshold
		greatest := 0.0
		degree := c.degree
		for degree > 0 && p[degree] == 0 {
			degree--
		}
		for _, v := range p[:degree+1] {
			greatest = max(greatest, math.Abs(v/p[degree]))
		}
		if found := roots(&p, degree, now/c.scale, max(now/c.scale, 1+greatest)); len(found) > 0 {
			t = found[0] * c.scale
		}
	}
	if !(t >= now) || math.IsInf(t, 0) {
		return math.MaxFloat64
	}
	return t - now
}

// roots returns the real roots of a polynomial in an interval, rising: between two neighbouring roots of its derivative it has at
// most one.
func roots(c *[maxDegree + 1]float64, degree int, from, to float64) []float64 {
	for degree > 0 && c[degree] == 0 {
		degree--
	}
	if degree <= 0 {
		return nil
	}
	if degree == 1 {
		if x := -c[0] / c[1]; x >= from && x <= to {
			return []float64{x}
		}
		return nil
	}
	slope := curve{degree: degree, c: *c}
	d := slope.derivative()
	points := append(append([]float64{from}, roots(&d, degree-1, from, to)...), to)
	var found []float64
	for i := 1; i < len(points); i++ {
		if x, ok := between(c, degree, points[i-1], points[i]); ok && (len(found) == 0 || x > found[len(found)-1]) {
			found = append(found, x)
		}
	}
	return found
}

// between finds the root of a polynomial that is monotone in an interval.
func between(c *[maxDegree + 1]float64, degree int, low, high float64) (float64, bool) {
	atLow, atHigh := horner(c, degree, low), horner(c, degree, high)
	switch {
	case atLow == 0:
		return low, true
	case atHigh == 0:
		return high, true
	case (atLow < 0) == (atHigh < 0):
		return 0, false
	}
	for range 200 {
		middle := low + (high-low)/2
		if middle == low || middle == high {
			break
		}
		if (horner(c, degree, middle) < 0) == (atLow < 0) {
			low = middle
		} else {
			high = middle
		}
	}
	return high, true
}
