fn main() -> f32 {
    return 1.0;
}
