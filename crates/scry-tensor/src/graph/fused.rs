//! Values that are not stored: a map of stored operands, which grows as nodes are fused.

use super::grouped::{BufferId, Work};
use super::node::NodeId;
use super::reason::{MAX_INPUTS, MAX_STEPS, Reason};
use crate::dtype::DType;
use crate::expr::{Expression, Id, Map, Slot};
use crate::lower::GatherAxis;
use crate::shape::{Layout, Shape};

/// A fused expression of stored operands, for each element of a shape.
#[derive(Clone)]
pub(crate) struct Fused {
    e: Expression,
    result: Id,
    pub(crate) dtype: DType,
    pub(crate) shape: Shape,
    /// The operands, with layouts of this shape.
    pub(crate) operands: Vec<(BufferId, Layout)>,
    pub(crate) arguments: Vec<u32>,
    pub(crate) gathered: Option<GatherAxis>,
    /// Whether it depends on the coordinates.
    has_coordinates: bool,
    /// The nodes that are computed.
    pub(crate) nodes: Vec<NodeId>,
}

/// The value of a node.
#[derive(Clone)]
pub(crate) enum Value {
    /// Elements in memory.
    Stored(BufferId, DType, Layout),
    /// An expression of elements in memory.
    Fused(Box<Fused>),
}

impl Fused {
    /// Returns the expression of a map of operands, all with its shape, that [`check`] accepts.
    ///
    /// `gathered` is the axis along which the map selects from its last operand.
    pub(crate) fn new(
        map: &Map,
        arguments: &[u32],
        gathered: Option<GatherAxis>,
        sources: Vec<Value>,
        shape: &Shape,
    ) -> Self {
        // The largest expression is extended in place.
        let size = |source: &Value| if let Value::Fused(it) = source { it.e.len() } else { 0 };
        let largest = (0..sources.len()).max_by_key(|n| size(&sources[*n]));
        let mut sources: Vec<Option<Value>> = sources.into_iter().map(Some).collect();
        let mut slots = vec![Slot::Operand(0); sources.len()];
        let mut fused = Self::empty(shape);
        if let Some(largest) = largest
            && let Some(Value::Fused(first)) = sources[largest].take_if(|it| size(it) > 0)
        {
            fused = *first;
            slots[largest] = Slot::Scalar(fused.e.round(fused.dtype, fused.result));
        }
        for (n, source) in sources.into_iter().enumerate() {
            match source {
                None => {}
                Some(Value::Stored(buffer, dtype, layout)) => {
                    slots[n] = Slot::Operand(fused.operand(buffer, dtype, layout));
                }
                Some(Value::Fused(other)) => slots[n] = Slot::Scalar(fused.absorb(&other)),
            }
        }
        fused.result = fused.e.append_map(map, &slots);
        fused.arguments.extend(arguments);
        fused.gathered = gathered.or(fused.gathered);
        fused.has_coordinates |= map.has_coordinates();
        fused.dtype = map.output;
        fused
    }

    fn empty(shape: &Shape) -> Self {
        Self {
            e: Expression::default(),
            result: Id::default(),
            dtype: DType::F32,
            shape: shape.clone(),
            operands: Vec::new(),
            arguments: Vec::new(),
            gathered: None,
            has_coordinates: false,
            nodes: Vec::new(),
        }
    }

    /// Returns the expression of one number.
    pub(crate) fn constant(dtype: DType, bits: u32, shape: &Shape) -> Self {
        let mut fused = Self::empty(shape);
        fused.result = fused.e.argument(dtype);
        (fused.dtype, fused.arguments) = (dtype, vec![bits]);
        fused
    }

    /// Returns the expression that copies elements in memory.
    pub(crate) fn copy(buffer: BufferId, dtype: DType, layout: Layout) -> Self {
        let mut fused = Self::empty(&layout.shape);
        let operand = fused.operand(buffer, dtype, layout);
        (fused.result, fused.dtype) = (fused.e.load(operand), dtype);
        fused
    }

    /// Returns the expression with another index map for each operand; with the reason, if there is
    /// none.
    pub(crate) fn viewed(
        mut self: Box<Self>,
        layout: impl Fn(&Layout) -> Option<Layout>,
    ) -> Result<Box<Self>, (Box<Self>, Reason)> {
        let own = Layout::contiguous(self.shape.clone());
        let Some(new) = layout(&own) else { return Err((self, Reason::View)) };
        let is_same = new.shape == self.shape && new.is_contiguous() && new.offset == 0;
        if self.has_coordinates && !is_same {
            return Err((self, Reason::Coordinates));
        }
        let operands: Option<Vec<_>> =
            self.operands.iter().map(|(buffer, own)| Some((*buffer, layout(own)?))).collect();
        let Some(operands) = operands else { return Err((self, Reason::View)) };
        (self.operands, self.shape) = (operands, new.shape);
        Ok(self)
    }

    /// Returns the bytes of the value, if it is stored.
    pub(crate) fn bytes(&self) -> u64 {
        self.shape.count().unwrap_or(0) as u64 * self.dtype.size() as u64
    }

    pub(crate) fn is_expensive(&self) -> bool {
        self.e.is_expensive()
    }

    /// Returns whether it is expensive as a part of a small kernel, whose launch takes longer than
    /// a few operations: functions are.
    pub(crate) fn is_expensive_if_small(&self) -> bool {
        self.e.len() > 24 || self.e.has_functions()
    }

    /// Returns the work of the kernel that stores the value.
    pub(crate) fn into_work(self) -> Work {
        let Self { e, result, dtype, operands, arguments, gathered, .. } = self;
        Work::Map { map: e.finish(result, dtype), operands, arguments, gathered }
    }

    /// Returns the position of an operand, added at its first use.
    fn operand(&mut self, buffer: BufferId, dtype: DType, layout: Layout) -> u32 {
        let known = self.operands.iter().position(|it| it.0 == buffer && it.1 == layout);
        match known {
            // An operand that is gathered from is not shared: its layout has another meaning.
            Some(known) if self.gathered.is_none() => known as u32,
            _ => {
                self.operands.push((buffer, layout));
                self.e.declare(dtype)
            }
        }
    }

    /// Adds the steps of another expression of the same shape, and returns its result.
    fn absorb(&mut self, other: &Self) -> Id {
        let map = other.e.clone().finish(other.result, other.dtype);
        let dtypes = map.operands.clone();
        let operands = other.operands.iter().zip(dtypes);
        let slots: Vec<Slot> = operands
            .map(|((buffer, layout), dtype)| {
                Slot::Operand(self.operand(*buffer, dtype, layout.clone()))
            })
            .collect();
        for node in &other.nodes {
            if !self.nodes.contains(node) {
                self.nodes.push(*node);
            }
        }
        self.arguments.extend(&other.arguments);
        self.gathered = self.gathered.or(other.gathered);
        self.has_coordinates |= other.has_coordinates;
        self.e.append(&map, &slots)
    }
}

/// Checks the limits of a kernel that computes a map of operands. An error is the reason why one of
/// the fused operands must be stored.
pub(crate) fn check(
    map: &Map,
    sources: &[&Value],
    gathered: Option<GatherAxis>,
    limit: usize,
) -> Result<(), Reason> {
    let mut operands: Vec<(BufferId, &Layout)> = Vec::new();
    let (mut steps, mut gathers) = (map.scalars.len(), usize::from(gathered.is_some()));
    for source in sources {
        match source {
            Value::Stored(buffer, _, layout) => operands.push((*buffer, layout)),
            Value::Fused(fused) => {
                operands.extend(fused.operands.iter().map(|(buffer, layout)| (*buffer, layout)));
                steps += fused.e.len() + 1;
                gathers += usize::from(fused.gathered.is_some());
            }
        }
    }
    if gathers > 1 {
        return Err(Reason::Gather);
    }
    let is_new = |n: &usize| gathers > 0 || !operands[..*n].contains(&operands[*n]);
    if (0..operands.len()).filter(is_new).count() > limit.min(MAX_INPUTS) {
        return Err(Reason::Inputs);
    }
    let has_fused = sources.iter().any(|source| matches!(source, Value::Fused(_)));
    if steps > MAX_STEPS && has_fused { Err(Reason::Steps) } else { Ok(()) }
}
