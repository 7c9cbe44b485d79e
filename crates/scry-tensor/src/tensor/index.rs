//! Indexing, as NumPy's `x[..., 0:5, -1]`.

use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

use scry_gpu::{Buffer, UntypedBuffer};

use super::Tensor;
use super::apply;
use crate::dtype::{DType, ELEMENTS, INTEGERS};
use crate::error::{Call, ErrorKind, Result};
use crate::expr::Expression;
use crate::op::{Address, Computed, Op, Part, View};
use crate::shape::{Layout, check_count};
use crate::stored::{Computation, Stored};
use crate::waiting::{Waiting, now};

/// One part of an index. Conversions make it of numbers, ranges, tensors, [`step`],
/// [`Ellipsis`] and [`NewAxis`].
///
/// ```
/// use scry_tensor::{Device, Index, Tensor};
///
/// let gpu = Device::open("cpu")?;
/// let x = Tensor::new([[1i32, 2, 3], [4, 5, 6]], &gpu)?;
/// let last = Index::from(-1i64);
/// let reversed = Index::Range { start: None, end: None, step: -1 };
/// assert_eq!(x.i((last, reversed))?.to_vec::<i32>()?, [6, 5, 4]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Index {
    /// One coordinate; the axis vanishes. Negative ones count from the end.
    At(i64),
    /// Coordinates from `start` to `end`, excluded, in distances of `step`, with NumPy's rules:
    /// negative bounds count from the end, and bounds out of range are clamped. Clippy's lint
    /// `reversed_empty_ranges` rejects literals such as `1..-1`; `1..` and `..-1` it does not.
    Range {
        /// The first coordinate; `None` for the first in the direction of the step.
        start: Option<i64>,
        /// The end; `None` for the last coordinate, included.
        end: Option<i64>,
        /// The distance, negative for the reverse order.
        step: i64,
    },
    /// As many full ranges as the tensor has more axes.
    Ellipsis,
    /// A new axis of size 1.
    NewAxis,
    /// Coordinates in a tensor of `i32` or `u32`, whose axes replace the axis; or a mask, a tensor
    /// of `bool`, of as many axes as it has.
    Tensor(Tensor),
}

/// NumPy's `...`: as many full ranges as the tensor has more axes.
///
/// ```
/// use scry_tensor::{DType, Device, Ellipsis, Tensor};
///
/// let gpu = Device::open("cpu")?;
/// let x = Tensor::zeros([2, 3, 4], DType::F32, &gpu)?;
/// assert_eq!(*x.i((Ellipsis, 0))?.shape(), [2, 3]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ellipsis;

/// NumPy's `newaxis`: a new axis of size 1.
///
/// ```
/// use scry_tensor::{Device, NewAxis, Tensor};
///
/// let gpu = Device::open("cpu")?;
/// assert_eq!(*Tensor::new([1, 2], &gpu)?.i((.., NewAxis))?.shape(), [2, 1]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewAxis;

/// A range with a step: see [`step`].
///
/// ```
/// use scry_tensor::{DType, Device, Step, Tensor, step};
///
/// let gpu = Device::open("cpu")?;
/// let every_other: Step = step(.., 2);
/// let x = Tensor::arange(5, DType::I32, &gpu)?;
/// assert_eq!(x.i(every_other)?.to_vec::<i32>()?, [0, 2, 4]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    start: Option<i64>,
    end: Option<i64>,
    step: i64,
}

/// Returns the range in distances of `step`, as NumPy's `start:end:step`.
///
/// ```
/// use scry_tensor::{DType, Device, Tensor, step};
///
/// let gpu = Device::open("cpu")?;
/// let x = Tensor::arange(6, DType::I32, &gpu)?;
/// assert_eq!(x.i(step(.., -2))?.to_vec::<i32>()?, [5, 3, 1]);
/// assert_eq!(x.i(step(1..-1, 3))?.to_vec::<i32>()?, [1, 4]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn step(range: impl StepRange, step: i64) -> Step {
    let (start, end) = range.bounds();
    Step { start, end, step }
}

/// The ranges that [`step`] accepts: those without an end, or that exclude it, of `i32`, `i64` or
/// `usize`. Which coordinate comes after an included end depends on the sign of the step.
///
/// ```
/// use scry_tensor::{DType, Device, StepRange, Tensor, step};
///
/// fn every_third(x: &Tensor, range: impl StepRange) -> scry_tensor::Result<Vec<i32>> {
///     x.i(step(range, 3))?.to_vec()
/// }
///
/// let gpu = Device::open("cpu")?;
/// let x = Tensor::arange(8, DType::I32, &gpu)?;
/// assert_eq!(every_third(&x, ..)?, [0, 3, 6]);
/// assert_eq!(every_third(&x, 1..-1i64)?, [1, 4]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait StepRange {
    /// Returns the first coordinate and the end.
    #[doc(hidden)]
    fn bounds(self) -> (Option<i64>, Option<i64>);
}

impl StepRange for RangeFull {
    fn bounds(self) -> (Option<i64>, Option<i64>) {
        (None, None)
    }
}

impl From<Step> for Index {
    fn from(Step { start, end, step }: Step) -> Self {
        Self::Range { start, end, step }
    }
}

impl From<Ellipsis> for Index {
    fn from(_: Ellipsis) -> Self {
        Self::Ellipsis
    }
}

impl From<NewAxis> for Index {
    fn from(_: NewAxis) -> Self {
        Self::NewAxis
    }
}

impl From<&Tensor> for Index {
    fn from(tensor: &Tensor) -> Self {
        Self::Tensor(tensor.clone())
    }
}

impl From<RangeFull> for Index {
    fn from(range: RangeFull) -> Self {
        step(range, 1).into()
    }
}

/// The end of a range that includes a coordinate: -1 is the last one.
fn after(last: i64) -> Option<i64> {
    if last == -1 { None } else { Some(last.saturating_add(1)) }
}

macro_rules! indices {
    ($($ty:ty),*) => {
        $(
            impl From<$ty> for Index {
                fn from(at: $ty) -> Self {
                    Self::At(wide(at))
                }
            }

            impl From<Range<$ty>> for Index {
                fn from(range: Range<$ty>) -> Self {
                    step(range, 1).into()
                }
            }

            impl From<RangeFrom<$ty>> for Index {
                fn from(range: RangeFrom<$ty>) -> Self {
                    step(range, 1).into()
                }
            }

            impl From<RangeTo<$ty>> for Index {
                fn from(range: RangeTo<$ty>) -> Self {
                    step(range, 1).into()
                }
            }

            impl StepRange for Range<$ty> {
                fn bounds(self) -> (Option<i64>, Option<i64>) {
                    (Some(wide(self.start)), Some(wide(self.end)))
                }
            }

            impl StepRange for RangeFrom<$ty> {
                fn bounds(self) -> (Option<i64>, Option<i64>) {
                    (Some(wide(self.start)), None)
                }
            }

            impl StepRange for RangeTo<$ty> {
                fn bounds(self) -> (Option<i64>, Option<i64>) {
                    (None, Some(wide(self.end)))
                }
            }

            impl From<RangeInclusive<$ty>> for Index {
                fn from(range: RangeInclusive<$ty>) -> Self {
                    let start = Some(wide(*range.start()));
                    Self::Range { start, end: after(wide(*range.end())), step: 1 }
                }
            }

            impl From<RangeToInclusive<$ty>> for Index {
                fn from(range: RangeToInclusive<$ty>) -> Self {
                    Self::Range { start: None, end: after(wide(range.end)), step: 1 }
                }
            }
        )*
    };
}

/// Widens a coordinate. One beyond `i64` is out of range of every axis, as `i64::MAX` is.
fn wide<T: TryInto<i64>>(at: T) -> i64 {
    at.try_into().unwrap_or(i64::MAX)
}

indices!(i32, i64, usize);

/// What [`Tensor::i`] accepts: one [`Index`], or a tuple of up to eight.
///
/// ```
/// use scry_tensor::{Device, IntoIndices, Tensor};
///
/// fn total(x: &Tensor, at: impl IntoIndices) -> scry_tensor::Result<i32> {
///     x.i(at)?.sum(..)?.item()
/// }
///
/// let gpu = Device::open("cpu")?;
/// let x = Tensor::new([[1i32, 2, 3], [4, 5, 6]], &gpu)?;
/// assert_eq!((total(&x, 1)?, total(&x, (.., 1..))?), (15, 16));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait IntoIndices {
    /// Returns the parts.
    #[doc(hidden)]
    fn into_indices(self) -> Vec<Index>;
}

impl<T: Into<Index>> IntoIndices for T {
    fn into_indices(self) -> Vec<Index> {
        vec![self.into()]
    }
}

macro_rules! tuples {
    ($(($($name:ident)*))*) => {
        $(impl<$($name: Into<Index>),*> IntoIndices for ($($name,)*) {
            #[expect(non_snake_case, reason = "the variables have the names of their types")]
            fn into_indices(self) -> Vec<Index> {
                let ($($name,)*) = self;
                vec![$($name.into()),*]
            }
        })*
    };
}

tuples! { (A) (A B) (A B C) (A B C D) (A B C D E) (A B C D E F) (A B C D E F G) (A B C D E F G H) }

/// Indexing.
impl Tensor {
    /// Returns the elements at an index: a view, unless the index has a tensor. The parts are
    /// numbers, ranges, [`step`], [`Ellipsis`], [`NewAxis`], tensors of `i32` or `u32`, and masks:
    /// tensors of `bool`. Axes without a part are kept.
    ///
    /// A tensor selects coordinates on the device, so they are not checked: negative ones count
    /// from the end, and one out of range selects zero. Several tensors are broadcast, and select
    /// together, as NumPy's: the axes of their shape replace those of the tensors, and are the
    /// first ones if a range is between them.
    ///
    /// A mask has the sizes of as many axes as it has, and selects where it is true, in row-major
    /// order. How many elements that are is read from the device, which waits for the mask; in a
    /// graph a mask must be a tensor in memory.
    ///
    /// ```
    /// use scry_tensor::{DType, Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::arange(24, DType::I32, &gpu)?.reshape([2, 3, 4])?;
    /// assert_eq!(x.i((.., 0..2, -1))?.to_vec::<i32>()?, [3, 7, 15, 19]);
    ///
    /// let rows = Tensor::new([2, -3, 2], &gpu)?;
    /// assert_eq!(x.i((1, &rows, 0))?.to_vec::<i32>()?, [20, 12, 20]);
    /// let columns = Tensor::new([0, 1, 3], &gpu)?;
    /// assert_eq!(x.i((1, &rows, &columns))?.to_vec::<i32>()?, [20, 13, 23]);
    /// assert_eq!(x.i(&x.ge(22)?)?.to_vec::<i32>()?, [22, 23]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Index`] if there are more parts than axes, a number is out of range, a step is
    /// 0, or there are several ellipses; [`ErrorKind::Shape`] if tensors do not broadcast, or a
    /// mask does not fit the axes; [`ErrorKind::DType`] for tensors of other types;
    /// [`ErrorKind::Graph`] for a mask that is a node of a graph.
    #[doc(alias("index", "slice", "narrow", "masked_select", "getitem"))]
    #[track_caller]
    pub fn i(&self, index: impl IntoIndices) -> Result<Self> {
        let call = Call::new("Tensor::i");
        now(self.indexed(call, index.into_indices(), Waiting::Blocking))
    }

    /// Async form of [`i`](Self::i), for masks: others wait for nothing.
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use scry_tensor::{DType, Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::arange(24, DType::I32, &gpu)?;
    /// assert_eq!(*x.i_async(&x.ge(22)?).await?.shape(), [2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::i`].
    #[track_caller]
    pub fn i_async<I: IntoIndices>(&self, index: I) -> impl Future<Output = Result<Self>> + use<I> {
        let call = Call::new("Tensor::i_async");
        let (tensor, index) = (self.clone(), index.into_indices());
        async move { tensor.indexed(call, index, Waiting::Awaiting).await }
    }

    async fn indexed(&self, call: Call, index: Vec<Index>, waiting: Waiting) -> Result<Self> {
        let indexed = async {
            call.check_dtype(self.dtype(), ELEMENTS)?;
            let parts = with_ellipsis(call, index, self.rank())?;
            // The tensors with the axis of the view that each begins at.
            let (mut tensors, mut views) = (Vec::new(), Vec::new());
            for part in &parts {
                let axis = views.iter().filter(|it| !matches!(it, Part::At(_))).count();
                match part {
                    Index::At(at) => views.push(Part::At(*at)),
                    Index::Range { start, end, step } => {
                        views.push(Part::Range { start: *start, end: *end, step: *step });
                    }
                    Index::NewAxis => views.push(Part::NewAxis),
                    Index::Tensor(indices) => {
                        tensors.push((axis, indices));
                        views.resize(views.len() + axes_of(part), Part::Full);
                    }
                    Index::Ellipsis => {}
                }
            }
            let view = self.view(call, View::Index(views))?;
            if tensors.is_empty() {
                return Ok(view);
            }
            let (view, tensors) = view.without_masks(call, tensors, waiting).await?;
            let is_split = is_split(&parts);
            let is_recorded =
                view.node().is_some() || tensors.iter().any(|(_, it)| it.node().is_some());
            let gathered = move || {
                let (axis, gathered) = view.selected(call, &tensors)?;
                let rank = gathered.rank() + tensors.len() - view.rank();
                if is_split { gathered.with_first(call, axis, rank) } else { Ok(gathered) }
            };
            match is_recorded {
                true => gathered(),
                false => waiting.compile(call, self.device(), gathered).await,
            }
        };
        let result = indexed.await;
        Self::scoped(&[self], result)
    }

    /// Returns a view in which the axes of each mask are one, and the tensors with the positions
    /// that masks select, each with its axis.
    async fn without_masks(
        self,
        call: Call,
        tensors: Vec<(usize, &Self)>,
        waiting: Waiting,
    ) -> Result<(Self, Vec<(usize, Self)>)> {
        let (mut view, mut merged, mut found) = (self, 0, Vec::new());
        for (axis, tensor) in tensors {
            let axis = axis - merged;
            if tensor.dtype() != DType::Bool {
                call.check_dtype(tensor.dtype(), INTEGERS)?;
                found.push((axis, tensor.clone()));
                continue;
            }
            let count = tensor.rank();
            let own = &view.shape()[axis..axis + count];
            if own != &**tensor.shape() {
                let mask = tensor.shape();
                let problem = format!("a mask of {mask} does not fit axes of the sizes {own:?}");
                let help = "a mask has the sizes of the axes that it selects from";
                return Err(call.shape_error(&[view.shape(), mask], problem, help));
            }
            view = view.view(call, View::Merge { axis, count })?;
            found.push((axis, tensor.selected_positions(call, waiting).await?));
            merged += count - 1;
        }
        Ok((view, found))
    }

    /// Returns the elements that tensors select together, and the first axis of their shape.
    fn selected(&self, call: Call, tensors: &[(usize, Self)]) -> Result<(usize, Self)> {
        let (first, indices) = (tensors[0].0, &tensors[0].1);
        if tensors.len() == 1 {
            return Ok((first, self.gathered(call, first, indices)?));
        }
        // The axes of the tensors, one after the other, where the first one is.
        let is_selected = |axis: &usize| tensors.iter().any(|(selected, _)| selected == axis);
        let mut order: Vec<usize> = (0..first).collect();
        order.extend(tensors.iter().map(|(axis, _)| *axis));
        order.extend((first..self.rank()).filter(|axis| !is_selected(axis)));
        let view = self.view(call, View::Permute(order))?;
        let indices = (0..tensors.len()).map(Some).collect();
        let address = Op::Computed(Computed::Address(Address { first, indices }));
        let operands: Vec<&Self> = tensors.iter().map(|(_, tensor)| tensor).collect();
        let positions = apply(call, address, &[&operands[..], &[&view]].concat())?;
        let merged = view.view(call, View::Merge { axis: first, count: tensors.len() })?;
        Ok((first, merged.gathered(call, first, &positions)?))
    }

    /// Returns the positions in row-major order where a mask is true.
    async fn selected_positions(&self, call: Call, waiting: Waiting) -> Result<Self> {
        if self.node().is_some() {
            let problem = "how many elements a mask selects is not known in a graph";
            let help = "choose between values with `where_`, or select with indices";
            return Self::scoped(&[self], Err(call.error(ErrorKind::Graph, problem, help)));
        }
        let (mask, device) = (self.clone(), self.device());
        let submitted = move || mask.submit_selection(call);
        let (chosen, found) = waiting.compile(call, device, submitted).await?;
        let found = match found {
            None => 0,
            Some(found) => {
                let bytes = waiting.download(call, &found.untyped()).await?;
                u32::from_ne_bytes(bytes[..].try_into().unwrap_or_default())
            }
        };
        let layout = Layout::contiguous([found as usize].into());
        let runtime = self.runtime().clone();
        Ok(Stored { runtime, buffer: chosen, layout, dtype: DType::U32 }.into())
    }

    /// Submits the selection of the positions where a mask is true. Returns their buffer, and that
    /// of their number unless there are none.
    fn submit_selection(&self, call: Call) -> Result<(UntypedBuffer, Option<Buffer<u32>>)> {
        let count = check_count(call, self.shape(), DType::U32)?;
        let flags = self.cast(DType::U32)?;
        let (runtime, flags) = (self.runtime(), flags.stored(call)?);
        let mut e = Expression::default();
        let position = e.position();
        let (map, operands) = (e.finish(position, DType::U32), Vec::new());
        let shape = [count as usize].into();
        let all = Computation { map: &map, shape, operands, gathered: None, arguments: &[] }
            .run(call, runtime)?;
        let select = || -> scry_gpu::Result<(UntypedBuffer, Option<Buffer<u32>>)> {
            let (device, words) = (runtime.device(), scry_gpu::DType::U32);
            let chosen = device.alloc_untyped(words, count as usize)?;
            if count == 0 {
                return Ok((chosen, None));
            }
            let found = device.alloc::<u32>(1)?;
            let (all, flags) = (all.buffer.view_as(words)?, flags.buffer.view_as(words)?);
            runtime.library().compact(&all, &flags, &chosen, &found)?.run()?;
            Ok((chosen.view_as(None)?, Some(found)))
        };
        select().map_err(|error| call.gpu(error))
    }

    /// Returns a view in which `count` axes from `axis` on are the first.
    fn with_first(&self, call: Call, axis: usize, count: usize) -> Result<Self> {
        let moved = axis..axis + count;
        let others = (0..self.rank()).filter(|it| !moved.contains(it));
        let axes: Vec<usize> = moved.clone().chain(others).collect();
        self.view(call, View::Permute(axes))
    }
}

/// Returns how many axes a part of an index stands for.
fn axes_of(part: &Index) -> usize {
    match part {
        Index::Ellipsis | Index::NewAxis => 0,
        Index::Tensor(mask) if mask.dtype() == DType::Bool => mask.rank(),
        _ => 1,
    }
}

/// Returns the parts of an index without tensors.
pub(crate) fn index_parts(call: Call, parts: Vec<Index>, rank: usize) -> Result<Vec<Part>> {
    let mut found = Vec::new();
    for part in with_ellipsis(call, parts, rank)? {
        found.push(match part {
            Index::At(at) => Part::At(at),
            Index::Range { start, end, step } => Part::Range { start, end, step },
            Index::NewAxis => Part::NewAxis,
            Index::Ellipsis => continue,
            Index::Tensor(_) => {
                let help = "use numbers and ranges";
                return Err(call.error(ErrorKind::Index, "the index has a tensor", help));
            }
        });
    }
    Ok(found)
}

/// Replaces the ellipsis, or the missing end, by full ranges; checks the number of parts.
fn with_ellipsis(call: Call, parts: Vec<Index>, rank: usize) -> Result<Vec<Index>> {
    let count = |is: fn(&Index) -> bool| parts.iter().filter(|part| is(part)).count();
    let ellipses = count(|part| matches!(part, Index::Ellipsis));
    let error = |problem: String, help: &str| Err(call.error(ErrorKind::Index, problem, help));
    if ellipses > 1 {
        return error(format!("the index has {ellipses} ellipses"), "use one; write `..` for axes");
    }
    let is_scalar = |part: &Index| match part {
        Index::Tensor(mask) => mask.dtype() == DType::Bool && mask.rank() == 0,
        _ => false,
    };
    if parts.iter().any(is_scalar) {
        return error(
            "a mask has no axes".to_owned(),
            "use a mask with the axes that it selects from",
        );
    }
    let used: usize = parts.iter().map(axes_of).sum();
    if used > rank {
        let problem = format!("the index has parts for {used} axes, but the tensor has {rank}");
        return error(problem, "use at most one part for each axis");
    }
    let full = std::iter::repeat_n(Index::from(..), rank - used);
    let end = parts.len();
    let at = parts.iter().position(|part| matches!(part, Index::Ellipsis)).unwrap_or(end);
    let mut parts = parts;
    parts.splice(at..(at + 1).min(end), full);
    Ok(parts)
}

/// Returns whether a range or a new axis is between numbers and a tensor. NumPy then puts the axes
/// of the tensor first.
fn is_split(parts: &[Index]) -> bool {
    let is_advanced = |part: &&Index| matches!(part, Index::At(_) | Index::Tensor(_));
    let runs = parts.chunk_by(|a, b| is_advanced(&a) == is_advanced(&b));
    runs.filter(|run| run.first().is_some_and(|part| is_advanced(&part))).count() > 1
}
