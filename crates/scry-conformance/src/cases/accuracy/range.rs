//! Ranges of permitted results, and WGSL's rules for operators.

/// A floating-point format.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Format {
    /// WGSL's name.
    pub name: &'static str,
    /// Explicit bits of the significand.
    pub fraction: i32,
    /// The smallest exponent of a normal number.
    pub least: i32,
    /// The largest finite number.
    pub max: f64,
}

pub const F32: Format = Format {
    name: "f32",
    fraction: 23,
    least: -126,
    max: 340_282_346_638_528_859_811_704_183_484_516_925_440.0,
};
pub const F16: Format = Format { name: "f16", fraction: 10, least: -14, max: 65504.0 };

/// All numbers from one to another; [`ANY`] is every float, NaN included.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range {
    pub low: f64,
    pub high: f64,
}

/// The results outside the domain, on overflow, and with unspecified accuracy.
pub const ANY: Range = Range { low: f64::NEG_INFINITY, high: f64::INFINITY };

impl Range {
    /// A range of one number.
    pub fn of(x: f64) -> Self {
        Self { low: x, high: x }
    }

    pub fn is_any(self) -> bool {
        self == ANY
    }

    #[cfg(test)]
    pub fn holds(self, x: f64) -> bool {
        self.is_any() || (self.low <= x && x <= self.high)
    }

    /// The smallest range that contains both.
    pub fn or(self, other: Self) -> Self {
        Self { low: self.low.min(other.low), high: self.high.max(other.high) }
    }

    pub fn negated(self) -> Self {
        Self { low: -self.high, high: -self.low }
    }

    fn ends(self) -> [f64; 2] {
        [self.low, self.high]
    }
}

/// 2 to an integer power, which may be subnormal.
fn power_of_two(exponent: i32) -> f64 {
    2f64.powi(exponent)
}

/// The exponent of the power of 2 that is at most |x|.
fn exponent(x: f64) -> i32 {
    assert!(x.is_normal(), "{x} has no exponent");
    (x.to_bits() >> 52 & 0x7ff) as i32 - 1023
}

impl Format {
    /// The distance between the numbers around x.
    fn step(self, x: f64) -> f64 {
        let exponent = if x == 0.0 { self.least } else { exponent(x).max(self.least) };
        power_of_two(exponent - self.fraction)
    }

    /// Returns whether a number is subnormal.
    pub fn is_subnormal(self, x: f64) -> bool {
        x != 0.0 && x.abs() < power_of_two(self.least)
    }

    /// Returns a unit in the last place as WGSL defines it: at a power of 2 the distance to the
    /// next number towards zero.
    pub fn ulp(self, x: f64) -> f64 {
        let step = self.step(x);
        let is_power = x != 0.0 && x.abs() == power_of_two(exponent(x));
        if is_power && exponent(x) > self.least { step / 2.0 } else { step }
    }

    /// Returns a range: everything on overflow or NaN, and zero as well if an end is subnormal,
    /// because it may be flushed.
    pub fn range(self, low: f64, high: f64) -> Range {
        if low.is_nan() || high.is_nan() || low < -self.max || high > self.max {
            return ANY;
        }
        let range = Range { low, high };
        if self.is_subnormal(low) || self.is_subnormal(high) {
            range.or(Range::of(0.0))
        } else {
            range
        }
    }

    /// Rounds outwards to the numbers of this format around two exact values.
    fn rounded(self, low: f64, high: f64) -> Range {
        // Far above the format's maximum; the spacing would overflow.
        if low.is_nan() || high.is_nan() || low.abs() > 1e300 || high.abs() > 1e300 {
            return ANY;
        }
        let (down, up) = (self.step(low), self.step(high));
        self.range((low / down).floor() * down, (high / up).ceil() * up)
    }

    /// Correctly rounded: the exact value if representable, or either neighbour.
    pub fn correct(self, exact: f64) -> Range {
        self.rounded(exact, exact)
    }

    /// As [`correct`](Self::correct), for a rounded value and its error.
    fn correct_about(self, value: f64, lacking: f64) -> Range {
        match lacking {
            _ if lacking > 0.0 => self.rounded(value, value.next_up()),
            _ if lacking < 0.0 => self.rounded(value.next_down(), value),
            _ => self.correct(value),
        }
    }

    /// All results with at most this absolute error.
    pub fn within(self, exact: f64, error: f64) -> Range {
        // The value itself was computed in f64.
        let error = error + exact.abs() * 1e-15;
        self.range(exact - error, exact + error)
    }

    /// All results with at most `count` ULP of error.
    pub fn within_ulps(self, exact: f64, count: f64) -> Range {
        if exact.is_nan() || exact.abs() > self.max {
            return ANY;
        }
        let unit =
            if exact.abs() < power_of_two(self.least) { self.step(0.0) } else { self.ulp(exact) };
        self.within(exact, count * unit)
    }

    /// Applies a rule to both ends of a range: for monotonic functions.
    pub fn over(self, x: Range, rule: impl Fn(f64) -> Range) -> Range {
        if x.is_any() {
            return ANY;
        }
        let [low, high] = x.ends().map(rule);
        low.or(high)
    }

    /// Applies a rule to all ends of two ranges: for functions monotonic in both.
    pub fn over_both(self, x: Range, y: Range, rule: impl Fn(f64, f64) -> Range) -> Range {
        self.over(x, |x| self.over(y, |y| rule(x, y)))
    }

    pub fn add(self, x: Range, y: Range) -> Range {
        self.over_both(x, y, |x, y| {
            let sum = x + y;
            let other = sum - x;
            self.correct_about(sum, (x - (sum - other)) + (y - other))
        })
    }

    pub fn sub(self, x: Range, y: Range) -> Range {
        self.add(x, y.negated())
    }

    pub fn mul(self, x: Range, y: Range) -> Range {
        self.over_both(x, y, |x, y| self.correct_about(x * y, x.mul_add(y, -(x * y))))
    }

    /// 2.5 ULP, where the divisor is in the specified interval.
    pub fn div(self, x: Range, y: Range) -> Range {
        let is_stated =
            |y: f64| (power_of_two(self.least)..=power_of_two(-self.least)).contains(&y.abs());
        if !is_stated(y.low) || !is_stated(y.high) || y.low.signum() != y.high.signum() {
            return ANY;
        }
        self.over_both(x, y, |x, y| self.within_ulps(x / y, 2.5))
    }

    pub fn inverse_sqrt(self, x: Range) -> Range {
        if x.low <= 0.0 {
            return ANY;
        }
        self.over(x, |x| self.within_ulps(1.0 / x.sqrt(), 2.0))
    }

    /// Inherited from `1.0 / inverseSqrt(x)`; zero for zero, where that is undefined.
    pub fn sqrt(self, x: Range) -> Range {
        let root = |x: f64| match x {
            0.0 => Range::of(0.0),
            _ => self.div(Range::of(1.0), self.inverse_sqrt(Range::of(x))),
        };
        if x.low < 0.0 { ANY } else { self.over(x, root) }
    }

    /// The error of `exp` and `exp2`.
    fn power_error(self, x: f64) -> f64 {
        let base = if self == F16 { 1.0 } else { 3.0 };
        base + 2.0 * x.abs()
    }

    pub fn exp(self, x: Range) -> Range {
        self.over(x, |x| self.within_ulps(x.exp(), self.power_error(x)))
    }

    pub fn exp2(self, x: Range) -> Range {
        self.over(x, |x| self.within_ulps(x.exp2(), self.power_error(x)))
    }

    /// A logarithm: an absolute error between 0.5 and 2, otherwise 3 ULP.
    fn logarithm(self, x: Range, exact: fn(f64) -> f64) -> Range {
        if x.low <= 0.0 {
            return ANY;
        }
        let near_one = power_of_two(if self == F16 { -7 } else { -21 });
        self.over(x, |x| match x {
            0.5..=2.0 => self.within(exact(x), near_one),
            _ => self.within_ulps(exact(x), 3.0),
        })
    }

    pub fn log(self, x: Range) -> Range {
        self.logarithm(x, f64::ln)
    }

    pub fn log2(self, x: Range) -> Range {
        self.logarithm(x, f64::log2)
    }

    /// 4096 ULP (5 for `f16`), where y is normal and x in the specified interval.
    pub fn atan2(self, y: Range, x: Range) -> Range {
        let (least, most) = (power_of_two(self.least), power_of_two(-self.least));
        let is_stated = |x: f64, y: f64| (least..=most).contains(&x.abs()) && y.abs() >= least;
        let one_sign = |range: Range| range.low.signum() == range.high.signum();
        if !one_sign(x) || !one_sign(y) {
            return ANY;
        }
        let count = if self == F16 { 5.0 } else { 4096.0 };
        self.over_both(y, x, |y, x| match is_stated(x, y) {
            true => self.within_ulps(y.atan2(x), count),
            false => ANY,
        })
    }

    /// The smaller or larger of two; either one if both are subnormal.
    fn choice(self, x: f64, y: f64, chosen: f64) -> Range {
        match self.is_subnormal(x) && self.is_subnormal(y) {
            true => self.range(x.min(y), x.max(y)),
            false => self.range(chosen, chosen),
        }
    }

    pub fn min(self, x: Range, y: Range) -> Range {
        self.over_both(x, y, |x, y| self.choice(x, y, x.min(y)))
    }

    pub fn max(self, x: Range, y: Range) -> Range {
        self.over_both(x, y, |x, y| self.choice(x, y, x.max(y)))
    }

    /// A step function with integer results, which are exact.
    pub fn whole(self, x: Range, function: fn(f64) -> f64) -> Range {
        self.over(x, |x| self.correct(function(x)))
    }

    /// A sum in any order.
    pub fn sum(self, terms: [Range; 3]) -> Range {
        let [x, y, z] = terms;
        let orders = [[x, y, z], [x, z, y], [y, z, x]];
        let sums = orders.map(|[x, y, z]| self.add(self.add(x, y), z));
        sums[0].or(sums[1]).or(sums[2])
    }

    /// A sum of products. WGSL permits reassociation, which is any order of evaluation that is
    /// equal without rounding, and does not bound its error. So products with a shared factor, as
    /// in `a * b + b * c`, may be `b * (a + c)`.
    pub fn dot(self, x: [Range; 3], y: [Range; 3]) -> Range {
        let products = self.sum([0, 1, 2].map(|i| self.mul(x[i], y[i])));
        let factored = [[0, 1, 2], [0, 2, 1], [1, 2, 0]].map(|[i, j, rest]| {
            let rest = self.mul(x[rest], y[rest]);
            self.factored([x[i], y[i]], [x[j], y[j]], rest)
        });
        factored.into_iter().flatten().fold(products, Range::or)
    }

    /// The sum of two products and a rest, with a shared factor factored out.
    fn factored(self, one: [Range; 2], other: [Range; 2], rest: Range) -> Option<Range> {
        let ways = [(0, 0), (0, 1), (1, 0), (1, 1)];
        let shared = ways.into_iter().filter(|(i, j)| one[*i] == other[*j]);
        let sums = shared.map(|(i, j)| {
            let sum = self.add(one[1 - i], other[1 - j]);
            self.add(self.mul(one[i], sum), rest)
        });
        sums.reduce(Range::or)
    }

    pub fn length(self, x: [Range; 3]) -> Range {
        self.sqrt(self.dot(x, x))
    }
}
