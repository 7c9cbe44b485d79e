// Searches the scale and the offset of a group of weights: a least-squares fit for each of several
// candidate roundings, of which the one with the smallest error is chosen. Sums are in the order of
// the weights.

const CANDIDATES: u32 = 9u;
const CANDIDATE_STEP: f32 = 0.25;
const FIRST_STEP_OFFSET: f32 = 1.0;

// How weights become integers: `round((weight - low) * steps)`, from `least` to `most`.
struct Rounding {
    low: f32,
    steps: f32,
    least: f32,
    most: f32,
}

struct Fit {
    scale: f32,
    offset: f32,
    is_valid: bool,
}

// The moments of weights `x` and integers `q`.
struct Moments {
    q1: f32,
    q2: f32,
    x1: f32,
    xq: f32,
}

fn to_integer(weight: f32, by: Rounding) -> f32 {
    return round_clamped((weight - by.low) * by.steps, by.least, by.most);
}

fn moments(by: Rounding) -> Moments {
    var sums = Moments();
    for (var nth = 0u; nth < GROUP; nth++) {
        let q = to_integer(weights[nth], by);
        sums.q1 += q;
        sums.q2 += exact(q * q);
        sums.x1 += weights[nth];
        sums.xq += exact(weights[nth] * q);
    }
    return sums;
}

// Returns the sum of squared errors.
fn squared_error(fit: Fit, by: Rounding) -> f32 {
    var sum = 0.0;
    for (var nth = 0u; nth < GROUP; nth++) {
        let q = to_integer(weights[nth], by);
        let residual = exact(fit.scale * q) - fit.offset - weights[nth];
        sum += exact(residual * residual);
    }
    return sum;
}

// Returns the regression line of the weights over the integers. It is not valid if these are all
// equal, or if the slope is not positive.
fn regression_line(sums: Moments) -> Fit {
    let n = f32(GROUP);
    let determinant = exact(n * sums.q2) - exact(sums.q1 * sums.q1);
    if determinant <= 0.0 {
        return Fit();
    }
    let low = divide(exact(sums.q2 * sums.x1) - exact(sums.q1 * sums.xq), determinant);
    var fit = Fit();
    if low > 0.0 {
        fit.scale = divide(sums.xq, sums.q2);
    } else {
        fit.scale = divide(exact(n * sums.xq) - exact(sums.q1 * sums.x1), determinant);
        fit.offset = abs(low);
    }
    fit.is_valid = fit.scale > 0.0;
    return fit;
}

fn line_through_zero(sums: Moments) -> Fit {
    if sums.q2 <= 0.0 {
        return Fit();
    }
    return Fit(divide(sums.xq, sums.q2), 0.0, true);
}

// Returns whether all weights are numbers.
fn are_numbers() -> bool {
    var are_numbers = true;
    for (var nth = 0u; nth < GROUP; nth++) {
        are_numbers = are_numbers && !is_nan(weights[nth]);
    }
    return are_numbers;
}

fn extra_steps(nth: u32) -> f32 {
    return CANDIDATE_STEP * f32(nth) - FIRST_STEP_OFFSET;
}

