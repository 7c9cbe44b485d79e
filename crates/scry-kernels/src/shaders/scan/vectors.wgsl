// Rows of elements as vectors of four. Preceded by the elements' definitions, by parameters.wgsl, and
// by
//
//     fn load_tail(column: u32) -> Computed; fn store_tail(column: u32, value: Computed),
//
// which access the elements of a single row after its last whole vector.

@group(0) @binding(0) var<storage, read> x: array<vec4<Stored>>;
@group(0) @binding(1) var<storage, read_write> y: array<vec4<Stored>>;

// Returns a vector of a row that is stored as such.
fn load_whole(row: u32, at: u32) -> vec4<Computed> {
    let values = x[row * parameters.body + at];
    return vec4<Computed>(widen(values.x), widen(values.y), widen(values.z), widen(values.w));
}

// Returns a vector of a row: zeros beyond its end.
fn load(row: u32, at: u32) -> vec4<Computed> {
    if at < parameters.body {
        return load_whole(row, at);
    }
    if at >= parameters.vectors {
        return vec4<Computed>();
    }
    let column = 4u * at;
    return vec4<Computed>(
        load_tail(column),
        load_tail(column + 1u),
        load_tail(column + 2u),
        load_tail(column + 3u),
    );
}

fn store_whole(row: u32, at: u32, values: vec4<Computed>) {
    y[row * parameters.body + at] =
        vec4<Stored>(narrow(values.x), narrow(values.y), narrow(values.z), narrow(values.w));
}

// Stores what is inside of a row.
fn store(row: u32, at: u32, values: vec4<Computed>) {
    if at < parameters.body {
        store_whole(row, at, values);
    } else if at < parameters.vectors {
        let column = 4u * at;
        store_tail(column, values.x);
        store_tail(column + 1u, values.y);
        store_tail(column + 2u, values.z);
        store_tail(column + 3u, values.w);
    }
}

