//! A thread's fragment of a row.

use super::Item;
use super::format::{Elements, Format};
use super::partition::RowPartition;
use crate::typed::Val;

/// Elements in the thread's registers.
pub(super) struct Fragment<'k> {
    format: Format,
    /// The elements: those of the vectors, then the edges.
    pub items: Vec<Item<'k>>,
    /// Whether each vector is in bounds; `None` if it always is.
    vectors: Vec<Option<Val<'k, bool>>>,
    edges: Vec<Edge<'k>>,
    /// Element offset of the thread's first vector in the row.
    first: Val<'k, u32>,
}

struct Edge<'k> {
    present: Val<'k, bool>,
    /// Its column.
    column: Val<'k, u32>,
}

impl<'k> Fragment<'k> {
    /// Loads the thread's fragment of its row; elements out of bounds are `absent`.
    pub fn load(partition: &RowPartition<'k>, x: Elements<'k>, absent: f32) -> Self {
        let (format, row) = (partition.format, partition.row_of(x));
        let (aligned, start) = (partition.aligned_part(), partition.start());
        let first = start << format.per_vector().ilog2();
        let first = aligned.head.map_or(first, |head| first + head);
        let mut fragment = Self { format, items: vec![], vectors: vec![], edges: vec![], first };
        let (first_vector, absent) = (format.at(row, first), format.fill_word(absent));
        let evict_first = partition.k.evict_first();
        for round in 0..partition.thread_group.vectors {
            let present = partition.present(aligned, start, round);
            let at = first_vector.offset(format.bytes(partition.round_offset(round)));
            fragment.add_vector(at.load_streaming(evict_first, present, absent), present);
        }
        for round in
            0..if partition.is_unaligned() { partition.thread_group.edges(format) } else { 0 }
        {
            let (column, present) = partition.edge(aligned, start, round);
            let word = format.load_one(format.at(row, column), Some(present), absent);
            fragment.add_edge(word, Edge { present, column });
        }
        fragment
    }

    fn add_vector(&mut self, words: [Val<'k, u32>; 4], present: Option<Val<'k, bool>>) {
        let values = words.into_iter().flat_map(|word| self.format.unpack(word));
        self.items.extend(values.map(|x| Item { x, present }));
        self.vectors.push(present);
    }

    fn add_edge(&mut self, word: Val<'k, u32>, edge: Edge<'k>) {
        let x = self.format.unpack(word)[0];
        self.items.push(Item { x, present: Some(edge.present) });
        self.edges.push(edge);
    }

    /// Applies a function to each element and the operands of its column, and stores the results.
    pub fn store(
        &self,
        partition: &RowPartition<'k>,
        y: Elements<'k>,
        columns: &[Elements<'k>],
        apply: impl Fn(Val<'k, f32>, &[Val<'k, f32>]) -> Val<'k, f32>,
    ) {
        let (format, row) = (self.format, partition.row_of(y));
        let (vectors, edges) = self.items.split_at(self.items.len() - self.edges.len());
        let first_vector = format.at(row, self.first);
        let column_addresses: Vec<_> =
            columns.iter().map(|column| format.at(*column, self.first)).collect();
        let vectors = vectors.chunks(format.per_vector() as usize).zip(&self.vectors);
        for (round, (items, present)) in (0..).zip(vectors) {
            let bytes = format.bytes(partition.round_offset(round));
            let operands = column_addresses
                .iter()
                .map(|at| self.column_operands(partition, at.offset(bytes), *present));
            let words = self.results(items, &operands.collect::<Vec<_>>(), &apply);
            first_vector.offset(bytes).store_if(and(*present, partition.in_bounds), words);
        }
        for (item, edge) in edges.iter().zip(&self.edges) {
            let operands: Vec<_> =
                columns.iter().map(|column| self.edge_operand(*column, edge)).collect();
            let condition = and(item.present, partition.in_bounds);
            format.store_one(format.at(row, edge.column), condition, apply(item.x, &operands));
        }
    }

    /// Returns the packed results of a vector.
    fn results(
        &self,
        items: &[Item<'k>],
        columns: &[Vec<Val<'k, f32>>],
        apply: impl Fn(Val<'k, f32>, &[Val<'k, f32>]) -> Val<'k, f32>,
    ) -> [Val<'k, u32>; 4] {
        let result = |nth: usize| {
            let operands: Vec<_> = columns.iter().map(|column| column[nth]).collect();
            apply(items[nth].x, &operands)
        };
        let per_word = self.format.per_word() as usize;
        std::array::from_fn(|word| {
            let results: Vec<_> = (0..per_word).map(|nth| result(word * per_word + nth)).collect();
            self.format.pack(&results)
        })
    }

    /// Loads the operand of an edge's column.
    fn edge_operand(&self, column: Elements<'k>, edge: &Edge<'k>) -> Val<'k, f32> {
        let at = self.format.at(column, edge.column);
        self.format.unpack(self.format.load_one(at, Some(edge.present), 0))[0]
    }

    /// Loads the operands of the columns of a vector, in chunks that the rows' alignment allows.
    fn column_operands(
        &self,
        partition: &RowPartition<'k>,
        at: Elements<'k>,
        condition: Option<Val<'k, bool>>,
    ) -> Vec<Val<'k, f32>> {
        let (format, unit) = (self.format, partition.unit);
        let pieces = (0..format.per_vector() / unit).map(|nth| {
            let at = at.offset(format.bytes(nth * unit));
            let words = match format.bytes(unit) {
                16 => at.load_constant_if::<4>(condition, 0).to_vec(),
                8 => at.load_constant_if::<2>(condition, 0).to_vec(),
                4 => at.load_constant_if::<1>(condition, 0).to_vec(),
                _ => return vec![format.unpack(format.load_one(at, condition, 0))[0]],
            };
            words.into_iter().flat_map(|word| format.unpack(word)).collect()
        });
        pieces.flatten().collect()
    }
}

/// Returns the conjunction of optional predicates.
fn and<'k>(a: Option<Val<'k, bool>>, b: Option<Val<'k, bool>>) -> Option<Val<'k, bool>> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a & b),
        _ => a.or(b),
    }
}
