//! Sorting for lists that little time is spent on: one sort for all types, which is built once and
//! not for each.

/// Sorts; what comes neither before nor after stays in its order.
pub(crate) fn sorted<T>(items: Vec<T>, before: &dyn Fn(&T, &T) -> bool) -> Vec<T> {
    let order = merge(items.len(), &|a, b| before(&items[a], &items[b]));
    let mut items: Vec<Option<T>> = items.into_iter().map(Some).collect();
    order.into_iter().filter_map(|at| items[at].take()).collect()
}

/// The numbers below `count`, sorted: runs of one, two, four… are merged.
fn merge(count: usize, before: &dyn Fn(usize, usize) -> bool) -> Vec<usize> {
    let mut from: Vec<usize> = (0..count).collect();
    let mut run = 1;
    while run < count {
        let mut to = Vec::with_capacity(count);
        for start in (0..count).step_by(2 * run) {
            let (middle, end) = ((start + run).min(count), (start + 2 * run).min(count));
            let (mut left, mut right) = (start, middle);
            while left < middle || right < end {
                let takes_right =
                    left == middle || (right < end && before(from[right], from[left]));
                let next = if takes_right { &mut right } else { &mut left };
                to.push(from[*next]);
                *next += 1;
            }
        }
        from = to;
        run *= 2;
    }
    from
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_order_is_that_of_a_stable_sort(keys in prop::collection::vec(0u8..9, 0..70)) {
            let items: Vec<(u8, usize)> = keys.into_iter().zip(0..).collect();
            let mut expected = items.clone();
            expected.sort_by_key(|item| item.0);
            prop_assert_eq!(sorted(items, &|a, b| a.0 < b.0), expected);
        }
    }
}
