//! Ranges of permitted results, and WGSL's rules for operators.

/// A floating-point format.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Format {
    /// WGSL's name.
    pub name: &'static str,
    /// Explicit bits of the significand.
    pub fraction_bits: i32,
    /// The smallest exponent of a normal number.
    pub min_exponent: i32,
    /// The largest finite number.
    pub max: f64,
}

pub const F32: Format = Format {
    name: "f32",
    fraction_bits: 23,
    min_exponent: -126,
    max: 340_282_346_638_528_859_811_704_183_484_516_925_440.0,
};
pub const F16: Format = Format { name: "f16", fraction_bits: 10, min_exponent: -14, max: 65504.0 };

/// All numbers from `low` to `high`, inclusive. [`ANY`] is every float, NaN included.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range {
    pub low: f64,
    pub high: f64,
}

/// Any result: outside of a function's domain, on overflow, and where the accuracy is unspecified.
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

    /// Returns the smallest range that contains both.
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

/// Returns 2 to an integer power.
fn power_of_two(exponent: i32) -> f64 {
    2f64.powi(exponent)
}

/// Returns the exponent of the largest power of 2 that is at most |x|.
fn exponent(x: f64) -> i32 {
    assert!(x.is_normal(), "{x} has no exponent");
    (x.to_bits() >> 52 & 0x7ff) as i32 - 1023
}

impl Format {
    /// Returns the distance from |x| to the next larger number of the format.
    fn spacing(self, x: f64) -> f64 {
        let exponent =
            if x == 0.0 { self.min_exponent } else { exponent(x).max(self.min_exponent) };
        power_of_two(exponent - self.fraction_bits)
    }

    /// Returns whether a number is subnormal.
    pub fn is_subnormal(self, x: f64) -> bool {
        x != 0.0 && x.abs() < power_of_two(self.min_exponent)
    }

    /// Returns a unit in the last place as WGSL defines it: at a power of 2 the distance to the
    /// next number towards zero.
    pub fn ulp(self, x: f64) -> f64 {
        let spacing = self.spacing(x);
        let is_power = x != 0.0 && x.abs() == power_of_two(exponent(x));
        if is_power && exponent(x) > self.min_exponent { spacing / 2.0 } else { spacing }
    }

    /// Returns the range from `low` to `high`: [`ANY`] if an end overflows or is NaN, and extended
    /// to zero if an end is subnormal, because it may be flushed.
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

    /// Returns the range between two exact values, rounded outwards to numbers of this format.
    fn rounded_outwards(self, low: f64, high: f64) -> Range {
        // Values far above the format's maximum, whose spacing would overflow.
        if low.is_nan() || high.is_nan() || low.abs() > 1e300 || high.abs() > 1e300 {
            return ANY;
        }
        let (down, up) = (self.spacing(low), self.spacing(high));
        self.range((low / down).floor() * down, (high / up).ceil() * up)
    }

    /// Returns the correctly rounded results: the exact value if representable, or either
    /// neighbour.
    pub fn correctly_rounded(self, exact: f64) -> Range {
        self.rounded_outwards(exact, exact)
    }

    /// As [`correctly_rounded`](Self::correctly_rounded), for the exact value `value + error`: an
    /// f64, and what was lost in rounding to it.
    fn correctly_rounded_sum(self, value: f64, error: f64) -> Range {
        match error {
            _ if error > 0.0 => self.rounded_outwards(value, value.next_up()),
            _ if error < 0.0 => self.rounded_outwards(value.next_down(), value),
            _ => self.correctly_rounded(value),
        }
    }

    /// Returns all results with at most this absolute error.
    pub fn within(self, exact: f64, error: f64) -> Range {
        // `exact` was computed in f64, which has an error, too.
        let error = error + exact.abs() * 1e-15;
        self.range(exact - error, exact + error)
    }

    /// Returns all results with at most `count` ULP of error; [`ANY`] if the exact one overflows.
    pub fn within_ulps(self, exact: f64, count: f64) -> Range {
        if exact.is_nan() || exact.abs() > self.max {
            return ANY;
        }
        let unit = if exact.abs() < power_of_two(self.min_exponent) {
            self.spacing(0.0)
        } else {
            self.ulp(exact)
        };
        self.within(exact, count * unit)
    }

    /// Applies a rule to both ends of a range, and returns the union: for monotonic functions.
    pub fn over(self, x: Range, rule: impl Fn(f64) -> Range) -> Range {
        if x.is_any() {
            return ANY;
        }
        let [low, high] = x.ends().map(rule);
        low.or(high)
    }

    /// Applies a rule to all pairs of ends of two ranges, and returns the union: for functions that
    /// are monotonic in both arguments.
    pub fn over_both(self, x: Range, y: Range, rule: impl Fn(f64, f64) -> Range) -> Range {
        self.over(x, |x| self.over(y, |y| rule(x, y)))
    }

    pub fn add(self, x: Range, y: Range) -> Range {
        self.over_both(x, y, |x, y| {
            let sum = x + y;
            // Knuth's TwoSum: `x + y` is exactly `sum + error`.
            let rounded_y = sum - x;
            let error = (x - (sum - rounded_y)) + (y - rounded_y);
            self.correctly_rounded_sum(sum, error)
        })
    }

    pub fn sub(self, x: Range, y: Range) -> Range {
        self.add(x, y.negated())
    }

    pub fn mul(self, x: Range, y: Range) -> Range {
        self.over_both(x, y, |x, y| {
            // The fused operation is exact: it returns what `x * y` lost in rounding.
            let error = x.mul_add(y, -(x * y));
            self.correctly_rounded_sum(x * y, error)
        })
    }

    /// 2.5 ULP, if the divisor is within the interval for which WGSL specifies the accuracy.
    pub fn div(self, x: Range, y: Range) -> Range {
        let has_specified_accuracy = |y: f64| {
            (power_of_two(self.min_exponent)..=power_of_two(-self.min_exponent)).contains(&y.abs())
        };
        if !has_specified_accuracy(y.low)
            || !has_specified_accuracy(y.high)
            || y.low.signum() != y.high.signum()
        {
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

    /// WGSL: the accuracy is inherited from `1.0 / inverseSqrt(x)`; zero for zero, where that is
    /// undefined.
    pub fn sqrt(self, x: Range) -> Range {
        let root = |x: f64| match x {
            0.0 => Range::of(0.0),
            _ => self.div(Range::of(1.0), self.inverse_sqrt(Range::of(x))),
        };
        if x.low < 0.0 { ANY } else { self.over(x, root) }
    }

    /// Returns the permitted error of `exp` and `exp2`, in ULP.
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

    /// A logarithm: an absolute error for arguments from 0.5 to 2, otherwise 3 ULP.
    fn logarithm(self, x: Range, exact: fn(f64) -> f64) -> Range {
        if x.low <= 0.0 {
            return ANY;
        }
        let error_near_one = power_of_two(if self == F16 { -7 } else { -21 });
        self.over(x, |x| match x {
            0.5..=2.0 => self.within(exact(x), error_near_one),
            _ => self.within_ulps(exact(x), 3.0),
        })
    }

    pub fn log(self, x: Range) -> Range {
        self.logarithm(x, f64::ln)
    }

    pub fn log2(self, x: Range) -> Range {
        self.logarithm(x, f64::log2)
    }

    /// 4096 ULP (5 for `f16`), where y is normal, and x is in the interval for which WGSL
    /// specifies the accuracy.
    pub fn atan2(self, y: Range, x: Range) -> Range {
        let (min, max) = (power_of_two(self.min_exponent), power_of_two(-self.min_exponent));
        let has_specified_accuracy =
            |x: f64, y: f64| (min..=max).contains(&x.abs()) && y.abs() >= min;
        let has_one_sign = |range: Range| range.low.signum() == range.high.signum();
        if !has_one_sign(x) || !has_one_sign(y) {
            return ANY;
        }
        let count = if self == F16 { 5.0 } else { 4096.0 };
        self.over_both(y, x, |y, x| match has_specified_accuracy(x, y) {
            true => self.within_ulps(y.atan2(x), count),
            false => ANY,
        })
    }

    /// Returns `chosen`, the minimum or the maximum of `x` and `y`; if both are subnormal, the
    /// range between them.
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
    pub fn rounding_function(self, x: Range, function: fn(f64) -> f64) -> Range {
        self.over(x, |x| self.correctly_rounded(function(x)))
    }

    /// A sum of three terms, in any order.
    pub fn sum(self, terms: [Range; 3]) -> Range {
        let [x, y, z] = terms;
        let orders = [[x, y, z], [x, z, y], [y, z, x]];
        let sums = orders.map(|[x, y, z]| self.add(self.add(x, y), z));
        sums[0].or(sums[1]).or(sums[2])
    }

    /// A sum of three products. WGSL permits reassociation: any order of evaluation that is equal
    /// without rounding. So products with a shared factor, as in `a * b + b * c`, may be
    /// `b * (a + c)`.
    pub fn dot(self, x: [Range; 3], y: [Range; 3]) -> Range {
        let products = self.sum([0, 1, 2].map(|i| self.mul(x[i], y[i])));
        let factored = [[0, 1, 2], [0, 2, 1], [1, 2, 0]].map(|[i, j, rest]| {
            let rest = self.mul(x[rest], y[rest]);
            self.factored([x[i], y[i]], [x[j], y[j]], rest)
        });
        factored.into_iter().flatten().fold(products, Range::or)
    }

    /// Returns the sum of two products and a `rest`, with a shared factor factored out; `None` if
    /// the products have no shared factor.
    fn factored(self, one: [Range; 2], other: [Range; 2], rest: Range) -> Option<Range> {
        let pairs = [(0, 0), (0, 1), (1, 0), (1, 1)];
        let shared = pairs.into_iter().filter(|(i, j)| one[*i] == other[*j]);
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
