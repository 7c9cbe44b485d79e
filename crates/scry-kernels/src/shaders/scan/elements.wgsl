// Rows of elements as vectors of four, which are loaded and stored one element at a time. Preceded by
// the elements' definitions and by parameters.wgsl.

@group(0) @binding(0) var<storage, read> x: array<Stored>;
@group(0) @binding(1) var<storage, read_write> y: array<Stored>;

fn load_element(row: u32, column: u32) -> Computed {
    if column < parameters.columns {
        return widen(x[row * parameters.columns + column]);
    }
    return Computed(0);
}

// No vector is stored as such.
fn load_whole(row: u32, at: u32) -> vec4<Computed> {
    return load(row, at);
}

// Returns a vector of a row: zeros beyond its end.
fn load(row: u32, at: u32) -> vec4<Computed> {
    if at >= parameters.vectors {
        return vec4<Computed>();
    }
    let column = 4u * at;
    return vec4<Computed>(
        load_element(row, column),
        load_element(row, column + 1u),
        load_element(row, column + 2u),
        load_element(row, column + 3u),
    );
}

fn store_element(row: u32, column: u32, value: Computed) {
    if column < parameters.columns {
        y[row * parameters.columns + column] = narrow(value);
    }
}

fn store_whole(row: u32, at: u32, values: vec4<Computed>) {
    store(row, at, values);
}

// Stores what is inside of a row.
fn store(row: u32, at: u32, values: vec4<Computed>) {
    if at < parameters.vectors {
        let column = 4u * at;
        store_element(row, column, values.x);
        store_element(row, column + 1u, values.y);
        store_element(row, column + 2u, values.z);
        store_element(row, column + 3u, values.w);
    }
}

