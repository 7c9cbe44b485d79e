struct Range {
    low: f32,
    high: f32,
}

var<immediate> range: Range;

fn apply(x: f32) -> f32 {
    return min(max(x, range.low), range.high);
}

