// The elements of a single row after its last whole vector. Preceded by the elements' definitions and
// by parameters.wgsl.

@group(0) @binding(2) var<storage, read> x_tail: array<Stored>;
@group(0) @binding(3) var<storage, read_write> y_tail: array<Stored>;

fn load_tail(column: u32) -> Computed {
    if column < parameters.columns {
        return widen(x_tail[column - 4u * parameters.body]);
    }
    return Computed(0);
}

fn store_tail(column: u32, value: Computed) {
    if column < parameters.columns {
        y_tail[column - 4u * parameters.body] = narrow(value);
    }
}

