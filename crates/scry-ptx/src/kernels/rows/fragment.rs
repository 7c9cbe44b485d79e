//! A thread's fragment of a row.

use super::Item;
use super::format::{Elements, Format};
use super::partition::RowPartition;
use crate::typed::Val;

/// Elements in the thread's registers.
pub(super) struct Part<'k> {
    format: Format,
    /// The elements: those of the vectors, then the edges.
    pub items: Vec<Item<'k>>,
    /// Predicate of each vector, where it is not certain.
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

impl<'k> Part<'k> {
    /// Loads the thread's fragment of its row; elements out of bounds are `absent`.
    pub fn load(cut: &RowPartition<'k>, x: Elements<'k>, absent: f32) -> Self {
        let (format, row) = (cut.format, cut.row_of(x));
        let (middle, start) = (cut.middle(), cut.start());
        let first = start << format.per_vector().ilog2();
        let first = middle.head.map_or(first, |head| first + head);
        let mut part = Self { format, items: vec![], vectors: vec![], edges: vec![], first };
        let (own, absent) = (format.at(row, first), format.filled(absent));
        let once = cut.k.evict_first();
        for round in 0..cut.thread_group.vectors {
            let present = cut.present(middle, start, round);
            let at = own.offset(format.bytes(cut.distance(round)));
            part.add_vector(at.load_once(once, present, absent), present);
        }
        for round in 0..if cut.ragged() { cut.thread_group.edges(format) } else { 0 } {
            let (column, present) = cut.edge(middle, start, round);
            let word = format.load_one(format.at(row, column), Some(present), absent);
            part.add_edge(word, Edge { present, column });
        }
        part
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

    /// Stores a function of each element and of the operands of its column.
    pub fn store(
        &self,
        cut: &RowPartition<'k>,
        y: Elements<'k>,
        columns: &[Elements<'k>],
        apply: impl Fn(Val<'k, f32>, &[Val<'k, f32>]) -> Val<'k, f32>,
    ) {
        let (format, row) = (self.format, cut.row_of(y));
        let (vectors, edges) = self.items.split_at(self.items.len() - self.edges.len());
        let own = format.at(row, self.first);
        let beside: Vec<_> = columns.iter().map(|of| format.at(*of, self.first)).collect();
        let vectors = vectors.chunks(format.per_vector() as usize).zip(&self.vectors);
        for (round, (items, present)) in (0..).zip(vectors) {
            let bytes = format.bytes(cut.distance(round));
            let numbers = beside.iter().map(|at| self.beside(cut, at.offset(bytes), *present));
            let words = self.results(items, &numbers.collect::<Vec<_>>(), &apply);
            own.offset(bytes).store_where(both(*present, cut.alive), words);
        }
        for (item, edge) in edges.iter().zip(&self.edges) {
            let numbers: Vec<_> = columns.iter().map(|of| self.beside_edge(*of, edge)).collect();
            let only = both(item.present, cut.alive);
            format.store_one(format.at(row, edge.column), only, apply(item.x, &numbers));
        }
    }

    /// Returns the words of a vector of results.
    fn results(
        &self,
        items: &[Item<'k>],
        columns: &[Vec<Val<'k, f32>>],
        apply: impl Fn(Val<'k, f32>, &[Val<'k, f32>]) -> Val<'k, f32>,
    ) -> [Val<'k, u32>; 4] {
        let result = |nth: usize| {
            let numbers: Vec<_> = columns.iter().map(|column| column[nth]).collect();
            apply(items[nth].x, &numbers)
        };
        let each = self.format.per_word() as usize;
        std::array::from_fn(|word| {
            let results: Vec<_> = (0..each).map(|nth| result(word * each + nth)).collect();
            self.format.pack(&results)
        })
    }

    /// Loads the operand of an edge's column.
    fn beside_edge(&self, column: Elements<'k>, edge: &Edge<'k>) -> Val<'k, f32> {
        let at = self.format.at(column, edge.column);
        self.format.unpack(self.format.load_one(at, Some(edge.present), 0))[0]
    }

    /// Loads the operands of the columns of a vector, in chunks that the rows' alignment allows.
    fn beside(
        &self,
        cut: &RowPartition<'k>,
        at: Elements<'k>,
        only: Option<Val<'k, bool>>,
    ) -> Vec<Val<'k, f32>> {
        let (format, unit) = (self.format, cut.unit);
        let pieces = (0..format.per_vector() / unit).map(|nth| {
            let at = at.offset(format.bytes(nth * unit));
            let words = match format.bytes(unit) {
                16 => at.load_where::<4>(only, 0).to_vec(),
                8 => at.load_where::<2>(only, 0).to_vec(),
                4 => at.load_where::<1>(only, 0).to_vec(),
                _ => return vec![format.unpack(format.load_one(at, only, 0))[0]],
            };
            words.into_iter().flat_map(|word| format.unpack(word)).collect()
        });
        pieces.flatten().collect()
    }
}

/// Returns the conjunction of optional predicates.
fn both<'k>(a: Option<Val<'k, bool>>, b: Option<Val<'k, bool>>) -> Option<Val<'k, bool>> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a & b),
        _ => a.or(b),
    }
}
